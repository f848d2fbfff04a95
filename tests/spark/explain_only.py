"""Every discovery and the check of rules under the profile `local-gpu`, with the plugin there to explain plans only.

A program of its own: the plugin must be there when the JVM starts. Arguments: a table, where the work is done; it
prints the answers as JSON. The same answers come from `answers` in any other session.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tuplewise as tw
from tuplewise.engine.spark.session import open_session
from tuplewise.spark_conf.plugin import PLUGIN_CLASS

ROWS = [
    "zip,city,pay,tax,day,least",
    *("01,A,10,1.0,2020-01-01,10", "01,A,20,2.5,2020-01-02,10", "02,B,20,2.5,2020-01-02,20"),
    *("02,C,35,3.0,2020-02-01,20", "03,C,35,3.0,2020-02-01,35", ",C,40,,2020-03-01,35", "04,D,50,4.5,,40"),
]
TABLE = "\n".join(ROWS) + "\n"
RULE = "not(t.zip == u.zip and t.city != u.city)"
CONF = {
    "spark.rapids.sql.mode": "explainOnly",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def answers(table: str, run_on: str) -> dict[str, Any]:
    """What the functions answer about a table, without what differs from run to run."""
    how: Any = {"run_on": run_on, "device": "cpu"}
    checked = tw.check(table, [RULE], **how).rules[0]
    orders = tw.discover_ods(table, **how).to_dict()["result"]
    return {
        "dc": sorted(str(c) for c in tw.discover_dcs(table, **how).constraints),
        "fd": tw.discover_fds(table, **how).to_dict()["result"]["fds"],
        "key": tw.discover_keys(table, **how).to_dict()["result"]["keys"],
        "od": [orders["constant"], orders["order_compatible"]],
        "ind": tw.discover_inds({"table": table}, **how).to_dict()["result"]["inds"],
        "check": [checked.violating_pairs, checked.violating_rows],
    }


def assert_as_here(found: dict[str, Any], table: str, run_on: str) -> None:
    """What a program printed: that the plugin was there, and the answers of this process's session."""
    assert found["plugins"] == PLUGIN_CLASS
    assert found["answers"] == json.loads(json.dumps(answers(table, run_on)))
    assert all(found["answers"].values())
    assert found["answers"]["check"] == [2, 2]


def main(table: str, run_on: str) -> None:
    context = open_session(profile="local-gpu", conf=CONF).spark.sparkContext
    plugins = context.getConf().get("spark.plugins")
    print(json.dumps({"plugins": plugins, "answers": answers(table, run_on)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
