"""How well measures of approximate FDs find the FDs that experts wrote down: recall among the first 10 and 20.

    python -m benchmarks.profile_measures FOLDER        the folder of golden.json and its tables

All left sides of one and two columns are counted exactly on all rows, whatever the measure: so the work is the same.
Rules are ranked by the measure alone (of equal ones shorter left sides first), and what follows from better ones is
left out, as in a profile. Measures: g3' = 1 - g3 / (N - classes of X) of Giannella and Robertson (2004); g1; tau of
Goodman and Kruskal (1954); FI, the fraction of information, and RFI, the reliable one (Mandros, Boley, Vreeken, KDD
2017), whose bias is the mean of permutations; mu+; and the score of profiles.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tuplewise
from tuplewise.engine.profile import counting, measures
from tuplewise.engine.profile.cover import cover
from tuplewise.engine.profile.rows import CountedRelation
from tuplewise.engine.profile.rule import Rule
from tuplewise.gpu_kernels.device import pick_device

PERMUTATIONS = 5
NEARLY_KEY = 0.999


@dataclass(frozen=True)
class Candidate:
    """An FD with what measures are made of."""

    left: tuple[int, ...]
    target: int
    counted: counting.CandidateCounts
    need: float
    differing: float
    information: tuple[float, float]
    """The fraction of information, and its bias."""


def entropy(counts: NDArray[Any]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def fraction_of_information(x: NDArray[Any], a: NDArray[Any]) -> float:
    """I(X; A) / H(A)."""
    of_target = entropy(np.bincount(a))
    both = np.unique(x.astype(np.int64) * (int(a.max()) + 1) + a, return_counts=True)[1]
    return (entropy(np.bincount(x)) + of_target - entropy(both)) / of_target if of_target else 0.0


def candidates(relation: Any) -> Iterable[Candidate]:
    """All FDs with one or two columns on the left that are no keys."""
    rows = CountedRelation(relation, "unknown", pick_device("cpu"))
    usable = [c for c in range(len(rows.codes)) if 1 < rows.distinct[c] < NEARLY_KEY * rows.filled[c]]
    targets = [c for c in range(len(rows.codes)) if rows.distinct[c] > 1]
    strength: dict[tuple[tuple[int, ...], int], float] = {}
    rng = np.random.default_rng(0)
    for size in (1, 2):
        for left in itertools.combinations(usable, size):
            wanted = [t for t in targets if t not in left]
            numbers = np.unique(rows.codes[list(left)], axis=1, return_inverse=True)[1].ravel()
            for target, counted in counting.count_fds(rows, left, wanted).items():
                strength[left, target] = counted.strength
                parts = itertools.combinations(left, size - 1) if size > 1 else ()
                need = counted.strength - max((strength.get((part, target), 0.0) for part in parts), default=0.0)
                kept = np.logical_and.reduce(rows.codes[[*left, target]] >= 0)
                x, a = numbers[kept], rows.codes[target][kept]
                if len(a) < 2:
                    continue
                bias = np.mean([fraction_of_information(x, rng.permutation(a)) for _ in range(PERMUTATIONS)])
                information = fraction_of_information(x, a), float(bias)
                yield Candidate(left, target, counted, need, float(rows.differing[target]), information)


def _g3(c: Candidate) -> float:
    repeated = c.counted.evidence / c.differing if c.differing else 0.0
    return 1.0 - c.counted.exceptions / repeated if repeated else 0.0


def _tau(c: Candidate) -> float:
    """(pdep(A|X) - pdep(A)) / (1 - pdep(A)), without mu's correction."""
    n = c.counted.rows
    contradictions = c.counted.evidence * (1.0 - c.counted.strength)
    return 1.0 - contradictions / n / c.differing if n and c.differing else 0.0


def _score(c: Candidate) -> float:
    least = measures.least_fd_strength(len(c.left), c.differing)
    if c.counted.strength < least or c.counted.evidence < measures.LEAST_EVIDENCE:
        return 0.0
    return measures.fd_score(c.counted.strength, c.counted.evidence, c.need, len(c.left), 1.0)


MEASURES: dict[str, Callable[[Candidate], float]] = {
    "g3": lambda c: 1.0 - c.counted.exceptions / max(c.counted.rows, 1),
    "g3'": _g3,
    "tau": _tau,
    "FI": lambda c: c.information[0],
    "RFI": lambda c: c.information[0] - c.information[1],
    "mu+": lambda c: c.counted.strength,
    "score": _score,
}


def found_among(first: int, listed: list[Any], golden: list[tuple[frozenset[int], int]]) -> int:
    """How many golden FDs follow from the first rules."""
    known = []
    for one in listed[:first]:
        known.append((frozenset(one.rule.left), one.rule.right[0]))
        known += [(frozenset([b]), a) for b, a in one.equivalent]
    found = 0
    for left, target in golden:
        closure, grew = set(left), True
        while grew:
            grew = False
            for sides, right in known:
                if sides <= closure and right not in closure:
                    closure.add(right)
                    grew = True
        found += target in closure
    return found


def main(folder: Path) -> None:
    """Print the recall of each measure."""
    golden = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    totals = {name: [0, 0] for name in MEASURES}
    wanted = 0
    for table, rules in golden.items():
        relation = tuplewise.load(folder / f"{table}.csv")
        place = {name: i for i, name in enumerate(relation.column_names)}
        fds = [rule.removeprefix("fd: ").split(" -> ") for rule in rules if rule.startswith("fd: ")]
        sides = [(frozenset(place[name] for name in left.split(",")), place[right]) for left, right in fds]
        wanted += len(sides)
        made = list(candidates(relation))
        for name, measure in MEASURES.items():
            values = [(measure(c), c) for c in made]
            listed = cover([_as_rule(value, c) for value, c in values if value > 0], len(relation.columns))
            for i, first in enumerate((10, 20)):
                totals[name][i] += found_among(first, listed, sides)
    for name, (ten, twenty) in totals.items():
        sys.stdout.write(f"{name:6} {ten:3} {twenty:3} of {wanted}\n")


def _as_rule(value: float, c: Candidate) -> Rule:
    counted = c.counted
    shorter_first = value - 1e-9 * len(c.left)
    return Rule("fd", c.left, (c.target,), "", counted.rows, counted.exceptions, counted.evidence, value, shorter_first)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
