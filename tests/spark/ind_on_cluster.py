"""Finds inclusion dependencies in the tasks of a cluster, and in this process, keeps them there; prints all, as JSON.

A driver program for `loopback.Loopback.run`. Arguments: two Parquet files, a folder for a state.
"""

from __future__ import annotations

import json
import os
import sys

import tuplewise as tw
from tuplewise.engine.spark.session import open_session, stop


def main(orders: str, customers: str, folder: str) -> None:
    open_session(master=os.environ["LOOPBACK_MASTER"], conf=json.loads(os.environ["LOOPBACK_CONF"]))
    tables = {"orders": orders, "customers": customers}
    found = {way: tw.discover_inds(tables, run_on=way).to_dict()["result"] for way in ("driver", "spark")}
    with tw.maintain_inds(folder, tables, run_on="spark") as state:
        found["built"] = [str(one) for one in state.inds]
        gone, back = state.delete(customers, table="customers"), state.insert(customers, table="customers")
        found["lost"], found["gained"] = [str(i) for i in gone.lost], [str(i) for i in back.gained]
        found["rows"] = state.rows
    stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
