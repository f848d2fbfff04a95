"""Records of a state's store: its heading, clusters, and the names of values; see `store`."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tuplewise.engine.ind.store import CLUSTER
from tuplewise.engine.ind.values import FAMILIES
from tuplewise.engine.table.relation import TypeName


def mask_bytes(attributes: int) -> int:
    """Length of a cluster's mask in the store, in bytes."""
    return -(-attributes // 8)


def put_cluster(transaction: Any, number: int, mask: int, values: int, attributes: int) -> None:
    """Write the number of values of a cluster; empty clusters are not stored."""
    key = CLUSTER + number.to_bytes(4, "big")
    if values:
        transaction.put(key, values.to_bytes(8, "little") + mask.to_bytes(mask_bytes(attributes), "little"))
    else:
        transaction.delete(key)


def cluster_of(record: bytes) -> tuple[int, int]:
    """Mask and number of values from a cluster's record."""
    return int.from_bytes(record[8:], "little"), int.from_bytes(record[:8], "little")


def heading(revision: int, next_long: int, rows: Sequence[int], filled: Sequence[int]) -> bytes:
    """The record of META. `filled`: non-null rows of each attribute."""
    return struct.pack(f"<{2 + len(rows) + len(filled)}Q", revision, next_long, *rows, *filled)


def heading_numbers(record: bytes) -> list[int]:
    """Revision, number of the next long value, rows of each table, and non-null rows of each attribute."""
    numbers: list[int] = np.frombuffer(record, dtype="<u8").tolist()
    return numbers


def value_text(name: bytes, type_: TypeName) -> str:
    """A value as readable text, from its name."""
    family, canonical = FAMILIES[name[0] & 0x0F], name[1:]
    if family == "double":
        return repr(float(np.frombuffer(canonical, dtype=">f8")[0]))
    text = canonical.decode("utf-8", "replace")
    if family != "instant":
        return text
    micro, _, nano = text.partition(".")
    moment = np.datetime64(int(micro), "us")
    return str(moment.astype("datetime64[D]") if type_ == "date" else moment) + nano
