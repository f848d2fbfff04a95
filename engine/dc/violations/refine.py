"""Filter of the rows that can take part in a rule, before its equalities group them."""

from __future__ import annotations

from tuplewise.engine.dc.violations.program import Program, passing_rows
from tuplewise.engine.grouping import Work
from tuplewise.gpu_kernels.clusters import ClusterPairs, restrict


def without_unfit(work: Work, program: Program, pairs: ClusterPairs, kinds: str = "tests and nulls") -> ClusterPairs:
    """Remove rows that can't take part in any violation.

    `kinds`: "tests" of single rows, "nulls" in compared columns, or both.
    """
    sides = []
    for tests, needed in (
        (program.left_tests, program.left_needed),
        (program.right_tests, program.right_needed),
    ):
        sides.append((tests if "tests" in kinds else (), needed if "nulls" in kinds else ()))
    left = passing_rows(work.codes, *sides[0])
    right = left if sides[0] == sides[1] else passing_rows(work.codes, *sides[1])
    return restrict(pairs, left, right)
