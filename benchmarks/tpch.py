"""TPC-H's lineitem joined with orders, made by the package tpchgen-cli: customers, suppliers, prices and dates."""

from __future__ import annotations

import math
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.outside import package_program

if TYPE_CHECKING:
    import pyarrow as pa

LINES_AT_SCALE_1 = 6_001_215
NAMES = {
    "l_suppkey": "supplier",
    "l_quantity": "quantity",
    "l_extendedprice": "extprice",
    "l_discount": "discount",
    "l_tax": "tax",
    "l_shipdate": "shipdate",
    "l_receiptdate": "receiptdate",
}


def lineitem_with_orders(rows: int, *, scale: float | None = None) -> pa.Table:
    """Line items, each with the customer of its order.

    Parameters
    ----------
    rows : number of rows to take from the top
    scale : TPC-H's scale factor; None for the least, in hundredths, that has so many rows

    Returns
    -------
    pyarrow.Table
        customer and supplier (int64), quantity, extprice, discount and tax (decimal), shipdate and receiptdate (date)

    Raises
    ------
    MissingData
        Where tpchgen-cli is not installed.
    """
    from pyarrow import parquet

    program = package_program("tpchgen-cli")
    if scale is None:
        scale = math.ceil(rows * 102 / LINES_AT_SCALE_1) / 100  # the lines of an order are drawn: 2 % to spare
    with tempfile.TemporaryDirectory(prefix="tuplewise-tpch-") as folder:
        command = [program, "parquet", "-s", str(scale), "-T", "lineitem,orders", "-o", folder]
        subprocess.run(command, check=True, capture_output=True)
        lines = parquet.read_table(Path(folder) / "lineitem.parquet", columns=["l_orderkey", *NAMES])
        orders = parquet.read_table(Path(folder) / "orders.parquet", columns=["o_orderkey", "o_custkey"])
    lines = lines.slice(0, rows).combine_chunks()
    keys, customers = (orders.column(c).to_numpy() for c in ("o_orderkey", "o_custkey"))  # keys ascend
    customer = customers[np.searchsorted(keys, lines.column("l_orderkey").to_numpy())]
    return _plain(customer, lines)


def _plain(customer: NDArray[np.int64], lines: pa.Table) -> pa.Table:
    """The columns under our names, without the metadata of the fields."""
    import pyarrow as pa

    columns = {ours: lines.column(theirs) for theirs, ours in NAMES.items()}
    return pa.table({"customer": pa.array(customer), **columns})
