"""Results of a check of rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Role
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.schema import note_on_text

if TYPE_CHECKING:
    from tuplewise.engine.dc.violations.distributed import SparkPairs

Cell = tuple[Role, str]


@dataclass(frozen=True, eq=False)
class RuleCheck:
    """Result of a check of one rule.

    Attributes
    ----------
    violating_pairs : exact number of ordered pairs (for a rule about one row: of rows); None if a limit was reached
        first
    violating_rows : number of rows in at least one violating pair; None if unknown or not requested (`count_only`)
    rows_unknown : number of rows that nulls leave out
    pairs : int64 (k, 2), row indexes t, u of the first violating pairs by (t, u); u = -1 for rules about one row
    row_counts : int64 (rows,), number of pairs with each row as t or as u (each pair of rows once if the rule is its
        own mirror); None with `count_only`
    plan : the planned steps
    """

    rule: DenialConstraint
    violating_pairs: int | None
    violating_rows: int | None
    rows_unknown: int
    symmetric: bool
    one_row: bool
    pairs: NDArray[np.int64]
    row_counts: NDArray[np.int64] | None
    plan: list[dict[str, Any]]
    seconds: float

    @property
    def holds(self) -> bool | None:
        """Whether the rule holds; None if that is unknown."""
        return None if self.violating_pairs is None else self.violating_pairs == 0

    @property
    def pairs_in_list(self) -> int | None:
        """Length of the complete list, which has each pair once if the rule is its own mirror."""
        pairs = self.violating_pairs
        return pairs // 2 if pairs is not None and self.symmetric else pairs


def remarks(rules: Sequence[DenialConstraint], relation: Relation) -> list[str]:
    """Notes on rules that don't depend on results; `relation` has the columns named by the rules."""
    if not rules:
        return ["no rules: nothing to check"]
    comparisons = [p for rule in rules for p in rule.predicates if p.operator in ("<", "<=", ">", ">=")]
    return note_on_text(relation, [name for p in comparisons for name in p.columns])


@dataclass(frozen=True, eq=False)
class DcCheck:
    """Results of all rules, in their order.

    `on_spark`: writer of all pairs if the rows are in Spark; `relation` then holds only the listed rows.
    """

    relation: Relation
    options: DcCheckOptions
    rules: tuple[RuleCheck, ...]
    device: str
    device_reason: str
    timings_seconds: Mapping[str, float]
    partial: bool
    notes: tuple[str, ...]
    on_spark: SparkPairs | None = None
