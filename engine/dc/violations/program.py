"""Rules bound to a table: tests of single rows and comparisons of pairs, over column numbers and codes.

A `Program` holds no names, values or relation, so it can be sent to a Spark task and run there on the codes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import Constant, DenialConstraint, Predicate, Role
from tuplewise.engine.dc.rule_text.constants import check_types, place_constant
from tuplewise.engine.grouping import Work
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.clusters import ClusterPairs, restrict
from tuplewise.gpu_kernels.join_types import EQUAL, GREATER, LESS, Comparison

ANY = LESS | EQUAL | GREATER
OUTCOMES_OF = {"==": EQUAL, "!=": LESS | GREATER, "<": LESS, "<=": LESS | EQUAL, ">": GREATER, ">=": GREATER | EQUAL}
EXCHANGED_OUTCOMES = [((o & LESS) and GREATER) | (o & EQUAL) | ((o & GREATER) and LESS) for o in range(ANY + 1)]


@dataclass(frozen=True, slots=True)
class OneRowTest:
    """A test of a single row.

    Attributes
    ----------
    kind : "columns" (two columns of the row), "constant" (a column against a place in its dictionary), "null"
        (`outcomes` EQUAL: the column is null; LESS | GREATER: it isn't)
    left, right : column numbers; `right` is used for "columns" only
    outcomes : bits of the outcomes that satisfy the test
    text : the test as the rule writes it, for people
    place : twice the rank of the constant, minus one if it lies just before that rank; null is -2
    """

    kind: Literal["columns", "constant", "null"]
    left: int
    outcomes: int
    right: int = -1
    place: int = 0
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Program:
    """A rule over column numbers.

    Attributes
    ----------
    left_tests, right_tests : tests of row t and of row u
    comparisons : comparisons that a violating pair satisfies, t's column on the left; one for each pair of columns
    left_needed, right_needed : columns that must not be null in t and in u (rule "unknown"; empty under "value")
    named : columns whose nulls leave a row out (rule "unknown"; empty under "value")
    keep_nulls : whether null is a value (rule "value")
    one_row : whether the rule is about one row, which is then t
    never : whether no pair of values could satisfy the program
    symmetric : whether the rule is its own mirror
    """

    left_tests: tuple[OneRowTest, ...]
    right_tests: tuple[OneRowTest, ...]
    comparisons: tuple[Comparison, ...]
    left_needed: tuple[int, ...]
    right_needed: tuple[int, ...]
    named: tuple[int, ...]
    keep_nulls: bool
    one_row: bool
    never: bool
    symmetric: bool

    @property
    def equalities(self) -> tuple[Comparison, ...]:
        return tuple(c for c in self.comparisons if c.outcomes == EQUAL)

    @property
    def unequals(self) -> tuple[Comparison, ...]:
        return tuple(c for c in self.comparisons if c.outcomes == LESS | GREATER)

    @property
    def inequalities(self) -> tuple[Comparison, ...]:
        return tuple(c for c in self.comparisons if c.outcomes not in (EQUAL, LESS | GREATER))

    @property
    def columns(self) -> list[int]:
        """All columns that the program reads, ascending."""
        tests = (*self.left_tests, *self.right_tests)
        compared = {c for pair in self.comparisons for c in (pair.left, pair.right)}
        return sorted(compared | {c for test in tests for c in (test.left, test.right) if c >= 0})

    def rows_unknown(self, codes: NDArray[np.int32]) -> int:
        """Number of rows left out because of a null in a column that the rule compares."""
        unknown = np.zeros(codes.shape[1], dtype=np.bool_)
        for column in self.named:
            unknown |= codes[column] == NULL_CODE
        return int(np.count_nonzero(unknown))


def bind(rule: DenialConstraint, relation: Relation, nulls: str) -> Program:
    """Bind a rule to a table.

    Parameters
    ----------
    nulls : "unknown" (a comparison with a null is never satisfied) or "value" (null equals null, lower than all else)

    Raises
    ------
    RuleError
        If the rule names an unknown column, or compares types that can't be compared.
    """
    check_types(relation, rule)
    tests: dict[Role, list[OneRowTest]] = {"t": [], "u": []}
    needed: dict[Role, set[int]] = {"t": set(), "u": set()}
    allowed: dict[tuple[int, int], int] = {}
    never = False
    for p in rule.predicates:
        left = relation.index_of(p.left)
        if isinstance(p.right, Constant):
            test = _constant_test(relation, left, p)
            tests[p.left_role].append(test)
            if test.kind == "constant":
                needed[p.left_role].add(left)
                never |= nulls == "unknown" and p.right.type == "null"
            continue
        right, outcomes = relation.index_of(p.right), OUTCOMES_OF[p.operator]
        needed[p.left_role].add(left)
        assert p.right_role is not None
        needed[p.right_role].add(right)
        if p.left_role == p.right_role:
            tests[p.left_role].append(OneRowTest("columns", left, outcomes, right, text=str(p)))
            continue
        if p.left_role == "u":
            left, right, outcomes = right, left, EXCHANGED_OUTCOMES[outcomes]
        allowed[left, right] = allowed.get((left, right), ANY) & outcomes
    roles = {role for p in rule.predicates for role in (p.left_role, p.right_role) if role is not None}
    if roles == {"u"}:
        tests["t"], tests["u"] = tests["u"], []
        needed["t"], needed["u"] = needed["u"], set()
    if nulls == "value":
        needed = {"t": set(), "u": set()}
    comparisons = tuple(Comparison(a, b, outcomes) for (a, b), outcomes in sorted(allowed.items()))
    return Program(
        left_tests=tuple(dict.fromkeys(tests["t"])),
        right_tests=tuple(dict.fromkeys(tests["u"])),
        comparisons=comparisons,
        left_needed=tuple(sorted(needed["t"])),
        right_needed=tuple(sorted(needed["u"])),
        named=tuple(sorted(needed["t"] | needed["u"])),
        keep_nulls=nulls == "value",
        one_row=len(roles) == 1,
        never=never or any(c.outcomes == 0 for c in comparisons),
        symmetric=len(roles) == 2 and rule.normalised().is_symmetric,
    )


def _constant_test(relation: Relation, column: int, p: Predicate) -> OneRowTest:
    assert isinstance(p.right, Constant)
    if p.operator in ("is", "is not"):
        return OneRowTest("null", column, EQUAL if p.operator == "is" else LESS | GREATER, text=str(p))
    if p.right.type == "null":
        place = 2 * NULL_CODE
    else:
        rank, present = place_constant(relation, column, p.right)
        place = 2 * rank - (not present)
    return OneRowTest("constant", column, OUTCOMES_OF[p.operator], place=place, text=str(p))


def exchange(c: Comparison) -> Comparison:
    """The comparison with t and u exchanged."""
    return Comparison(c.right, c.left, EXCHANGED_OUTCOMES[c.outcomes])


def passing_rows(
    codes: NDArray[np.int32], tests: Sequence[OneRowTest], needed: Sequence[int]
) -> NDArray[np.bool_] | None:
    """Rows that pass these tests and have no null in the columns `needed`, bool (rows,); None if all do."""
    passing: NDArray[np.bool_] | None = None
    for column in needed:
        there = codes[column] != NULL_CODE
        passing = there if passing is None else passing & there
    for test in tests:
        if test.kind == "columns":
            good = satisfied(codes[test.left], codes[test.right], test.outcomes)
        elif test.kind == "constant":
            good = satisfied(2 * codes[test.left].astype(np.int64), test.place, test.outcomes)
        else:
            good = (codes[test.left] == NULL_CODE) == (test.outcomes == EQUAL)
        passing = good if passing is None else passing & good
    return None if passing is None or passing.all() else passing


def without_unfit(work: Work, program: Program, pairs: ClusterPairs, kinds: str = "tests and nulls") -> ClusterPairs:
    """Remove the rows that can't take part in any violation, before equalities group them.

    `kinds`: "tests" of single rows, "nulls" in compared columns, or both.
    """
    left, right = (
        (tests if "tests" in kinds else (), needed if "nulls" in kinds else ())
        for tests, needed in (
            (program.left_tests, program.left_needed),
            (program.right_tests, program.right_needed),
        )
    )
    passing = passing_rows(work.codes, *left)
    return restrict(pairs, passing, passing if left == right else passing_rows(work.codes, *right))


def satisfied_with_itself(codes: NDArray[np.int32], comparisons: Sequence[Comparison]) -> NDArray[np.bool_] | None:
    """Rows that satisfy these comparisons with themselves, bool (rows,); None if none can."""
    if any(c.left == c.right and not c.outcomes & EQUAL for c in comparisons):
        return None
    passing = np.ones(codes.shape[1], dtype=np.bool_)
    for c in comparisons:
        if c.left != c.right:
            passing &= satisfied(codes[c.left], codes[c.right], c.outcomes)
    return passing


def satisfied(
    left: NDArray[np.signedinteger], right: NDArray[np.signedinteger] | int, outcomes: int
) -> NDArray[np.bool_]:
    """Mask of places where the outcome of left against right is one of `outcomes`."""
    good = np.zeros(len(left), dtype=np.bool_)
    if outcomes & LESS:
        good |= left < right
    if outcomes & EQUAL:
        good |= left == right
    if outcomes & GREATER:
        good |= left > right
    return good
