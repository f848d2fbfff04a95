"""A relation of the driver's as a frame in Spark, so that tests need not load it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.spark_frame import EncodedFrame
from tuplewise.engine.table.spark_rows import RowRuns


class Held(EncodedFrame):
    """An EncodedFrame over the codes of a relation; its rows have the given positions."""

    relation: Relation

    @classmethod
    def of(cls, spark: Any, relation: Relation, positions: NDArray[np.int64]) -> Held:
        columns = {f"c{i}": pa.array(row) for i, row in enumerate(relation.codes)}
        frame = spark.createDataFrame(pa.table({"position": positions, **columns})).repartition(3).persist()
        header = replace(relation, codes=np.zeros((len(relation.columns), 0), dtype=np.int32))
        made = cls(frame, header, relation.rows, [], frame, RowRuns(*np.zeros((3, 0), dtype=np.int64)), [frame])
        made.relation = replace(relation, positions=positions)
        return made

    def excerpt(self, positions: NDArray[np.int64]) -> Relation:
        assert self.relation.positions is not None
        index = np.searchsorted(self.relation.positions, positions)
        assert (self.relation.positions[index] == positions).all()
        return replace(self.relation, codes=self.relation.codes[:, index].copy(), positions=positions)


def unread(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a result says of its tables, but for what read them."""
    return [{key: value for key, value in table.items() if not key.startswith("reader")} for table in tables]
