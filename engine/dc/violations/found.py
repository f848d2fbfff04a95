"""What a check of rules found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Role
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.table.relation import Relation

Cell = tuple[Role, str]


@dataclass(frozen=True, eq=False)
class RuleCheck:
    """What was found about one rule.

    Attributes
    ----------
    holds : None where a limit came before it was known
    violating_pairs : ordered pairs, exact (of a rule about one row: rows); None where not known
    violating_rows : rows in at least one violating pair; None where not known or not asked for (`count_only`)
    rows_unknown : rows that nulls leave out
    pairs : int64 (k, 2), row indexes t, u of the first violating pairs by (t, u); u = -1 for rules about one row
    pairs_in_list : how many the complete list has: each pair once where the rule is its own mirror
    row_counts : int64 (rows,), pairs that each row is in, as t or as u (each pair of rows once where the rule is its
        own mirror); None with `count_only`
    plan : steps as they were planned
    """

    rule: DenialConstraint
    holds: bool | None
    violating_pairs: int | None
    violating_rows: int | None
    rows_unknown: int
    symmetric: bool
    one_row: bool
    pairs: NDArray[np.int64]
    pairs_in_list: int | None
    row_counts: NDArray[np.int64] | None
    plan: list[dict[str, Any]]
    seconds: float


class ViolatingPairsOnSpark(Protocol):
    """Writes the pairs of a check whose rows stayed in Spark."""

    def write_pairs(
        self, folder: str, columns: Sequence[Cell], own: Sequence[Sequence[Cell]], deadline: float | None
    ) -> None:
        """Write all pairs of all rules as a folder of Parquet files, whole or not at all.

        Parameters
        ----------
        columns : cells (role, column) of the list, which come after the rule and the rows
        own : the cells that each rule has; null in the others
        deadline : `time.monotonic()` value; TimeoutError is raised there
        """


@dataclass(frozen=True, eq=False)
class DcCheck:
    """What was found about all rules, in their order.

    `on_spark`: what lists all pairs where the rows are in Spark, and only those that are listed in `relation`.
    """

    relation: Relation
    options: DcCheckOptions
    rules: tuple[RuleCheck, ...]
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: tuple[str, ...]
    on_spark: ViolatingPairsOnSpark | None = None
