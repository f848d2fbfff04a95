"""Which old rows a new one is compared with: probes, chosen for the hitting sets of a state, and the boxes they ask.

A *probe* is a set of predicates. A new row is compared with all rows with which it satisfies a probe, in either order.
A constraint that contains a probe can only be violated by such pairs, so when each minimal hitting set contains one,
the clues of all violating new pairs come to light; a constraint that takes the place of a violated one contains it,
and so contains the probe.

A probe is *promised* when all living pairs that satisfy it have their clue in the clue set: then every hitting set that
contains it holds. Inserting keeps promises; deleting may break some (revising.py).

Source: SelectIndex of IncDC (Qian et al., VLDB Journal 2023, section 7). Departures: equalities are taken together, up
to four; what a probe costs is estimated from pairs of a sample that agree, not from the share of distinct values; and
what no equality serves asks for the rows that satisfy all of a constraint's predicates, not two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.column_sets import list_subsets, unpacked
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.local_table import count_agreeing
from tuplewise.gpu_kernels.column_set_index import EXCHANGED, Queries, SortedRows, Term
from tuplewise.gpu_kernels.words import ACROSS

QUERY_SECONDS = 1.5e-6  # to go down to a box
PAIR_SECONDS = 1e-7  # to fetch and compare a row of it
OWN_SECONDS = 4e-6  # for a constraint that is a probe of its own
SCANNED_PAIR_SECONDS = 1.2e-8  # to compare with a row that lies next to the one before
MOST_COLUMN_PAIRS = 4  # equalities of a probe
JUDGED_SETS = 4000  # hitting sets that a choice looks at; of more, so many at random
JUDGED_ROWS = 1 << 15  # rows that agreeing pairs are estimated from
LEAST_ROWS = 4096  # with fewer, a new row is compared with all


@dataclass(frozen=True, eq=False)
class Probes:
    """Chosen probes.

    Attributes
    ----------
    masks : uint64 (probes, words), vertices of each
    promised : bool (probes,)
    own : bool (probes,), which were hitting sets themselves when they were chosen
    seconds : what they cost for each new row, as far as it can be foreseen
    """

    masks: Sets
    promised: NDArray[np.bool_]
    own: NDArray[np.bool_]
    seconds: float = 0.0

    def with_own(self, sets: Sets) -> Probes:
        """With hitting sets that hold as probes of their own: no pair satisfies them, so they are promised."""
        if not len(sets):
            return self
        new = np.ones(len(sets), dtype=np.bool_)
        masks = np.concatenate([self.masks, sets])
        return Probes(masks, np.concatenate([self.promised, new]), np.concatenate([self.own, new]), self.seconds)

    def promise(self, sets: Sets) -> NDArray[np.bool_]:
        """bool (sets,): which contain a promised probe."""
        return contains_some(sets, self.masks[self.promised])


def contains_some(sets: Sets, parts: Sets) -> NDArray[np.bool_]:
    """bool (sets,): which contain one of some sets."""
    found = np.zeros(len(sets), dtype=np.bool_)
    for part in parts:
        found |= np.all(sets & part == part, axis=1)
    return found


def unprobed(sets: Sets, masks: Sets, vertices: Vertices) -> NDArray[np.bool_]:
    """bool (sets,): which contain none of some probes, and are not about one row alone, which any pair shows."""
    alone = vertices.about_one_row(sets) & np.any(sets, axis=1)
    return np.asarray(~contains_some(sets, masks) & ~alone)


def choose_probes(
    sets: Sets, vertices: Vertices, codes: NDArray[np.int32], promised: Sets, *, keep_nulls: bool, seed: int = 0
) -> Probes:
    """Probes such that each hitting set contains one, or is about one row.

    Greedy: the equalities that serve most sets for what their agreeing pairs cost, while that is less than the sets'
    being probes of their own.

    Parameters
    ----------
    sets : minimal hitting sets, of which one of each mirror pair suffices
    codes : int32 (rows, columns), of all rows or a sample; estimates come from some of them
    promised : sets of vertices that are promised; what contains one of them, or a hitting set, is promised too

    Notes
    -----
    Cost: subsets of the equalities of some thousands of sets, and a count of agreeing pairs of the sample for each that
    could be the best.
    """
    rng = np.random.default_rng(seed)
    open_ = sets[unprobed(sets, sets[:0], vertices)]
    rows = len(codes)
    sample = codes if rows <= JUDGED_ROWS else codes[np.sort(rng.choice(rows, JUDGED_ROWS, replace=False))]
    sample = np.ascontiguousarray(sample)
    scale = rows / max(1, len(sample)) * 2 / max(1, len(sample))  # pairs of a row, for each pair of the sample
    chosen: list[NDArray[np.uint64]] = []
    seconds = 0.0
    while len(open_):
        share = max(1.0, len(open_) / JUDGED_SETS)
        judged = open_ if share == 1.0 else open_[rng.choice(len(open_), JUDGED_SETS, replace=False)]
        subsets, owners = list_subsets(np.ascontiguousarray(vertices.agreements(judged)), MOST_COLUMN_PAIRS)
        codes_, place = np.unique(subsets, return_inverse=True)
        before = len(chosen)
        open_judged = np.ones(len(judged), dtype=np.bool_)
        costs = np.full(len(codes_), np.nan)
        while True:
            served = share * np.bincount(place, weights=open_judged[owners], minlength=len(codes_))
            best, best_ratio = -1, 1.0 / OWN_SECONDS
            known = np.flatnonzero(~np.isnan(costs))
            if len(known):
                at = int(known[np.argmax(served[known] / costs[known])])
                if served[at] / costs[at] > best_ratio:
                    best, best_ratio = at, float(served[at] / costs[at])
            unknown = np.flatnonzero(np.isnan(costs))
            for at in unknown[np.argsort(-served[unknown], kind="stable")].tolist():
                if served[at] <= best_ratio * QUERY_SECONDS:
                    break
                pairs = scale * _agreeing(sample, vertices, unpacked(int(codes_[at])), keep_nulls)
                costs[at] = QUERY_SECONDS + PAIR_SECONDS * pairs
                if served[at] / costs[at] > best_ratio:
                    best, best_ratio = at, float(served[at] / costs[at])
            if best < 0:
                break
            seconds += float(costs[best])
            chosen.append(vertices.equalities(list(unpacked(int(codes_[best])))))
            open_judged &= ~contains_some(judged, chosen[-1][None, :])
        open_ = open_[~contains_some(open_, np.array(chosen[before:]).reshape(-1, vertices.words))]
        if share == 1.0 or len(chosen) == before:
            break
    masks = np.concatenate([np.array(chosen, dtype=np.uint64).reshape(-1, vertices.words), open_])
    seconds += OWN_SECONDS * len(open_)
    own = np.arange(len(masks)) >= len(chosen)
    return Probes(masks, own | contains_some(masks, promised), own, seconds)


def _agreeing(
    sample: NDArray[np.int32], vertices: Vertices, places: Sequence[int], keep_nulls: bool
) -> float:
    """About how many unordered pairs of the sample agree on some column pairs; ordered ones, where these are of
    different columns."""
    pairs = [vertices.column_pairs[p] for p in places]
    if all(left == right for left, right in pairs):
        return float(count_agreeing(sample, np.array([left for left, _ in pairs], dtype=np.int64), keep_nulls))
    mine, theirs = (_counted_keys(sample[:, [pair[side] for pair in pairs]], keep_nulls) for side in (0, 1))
    _, at, other = np.intersect1d(mine[0], theirs[0], assume_unique=True, return_indices=True)
    return float(np.dot(mine[1][at], theirs[1][other]))


def _counted_keys(
    values: NDArray[np.int32], keep_nulls: bool
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A hash of what rows hold, uint64 (distinct,), and how many hold it."""
    if not keep_nulls:
        values = values[np.all(values >= 0, axis=1)]
    keys = np.zeros(len(values), dtype=np.uint64)
    for column in values.T:
        keys = (keys ^ (column.astype(np.int64) + 2).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return np.unique(keys, return_counts=True)


def terms_of(masks: Sets, vertices: Vertices) -> list[list[list[Term]]]:
    """What each probe asks of an old row, given a new one that is t, and one that is u; once where both are alike."""
    space = vertices.space
    predicates, sizes = vertices.predicates_of(masks)
    asked = []
    for numbers, size in zip(predicates, sizes, strict=True):
        as_t: list[Term] = []
        as_u: list[Term] = []
        for number in numbers[:size].tolist():
            group = int(space.predicate_group[number])
            if space.scope[group] != ACROSS:
                continue  # said of one row: more pairs are then compared than satisfy the probe
            operator = int(space.predicate_operator[number])
            left, right = int(space.left[group]), int(space.right[group])
            as_t.append((right, EXCHANGED[operator], left))
            as_u.append((left, operator, right))
        asked.append([as_t] if sorted(as_t) == sorted(as_u) else [as_t, as_u])
    return asked


def sort_columns(terms: Sequence[Term], distinct: Sequence[int]) -> list[int]:
    """The columns of a query in the order that rows are best sorted by: those that it fixes; then those of few values,
    as what must differ is nearly fixed there."""
    kinds: dict[int, int] = {}
    for old, operator, _ in terms:
        kinds[old] = min(kinds.get(old, 2), min(operator, 2))
    return sorted(kinds, key=lambda c: (kinds[c], distinct[c] if kinds[c] else -distinct[c], c))


def column_lists(
    asked: Sequence[Sequence[Sequence[Term]]], own: Sequence[bool], distinct: Sequence[int]
) -> tuple[list[list[int]], list[bool]]:
    """By which columns rows are to be sorted for some probes, and whether all rows are needed in each order.

    A query goes without its own order where another one has all of its columns and begins with those that it fixes.
    `own`: which probes are constraints that hold; their boxes are nearly always empty, so that of rows that are equal
    in the columns of an order some will do. There is one order at least.
    """
    wanted: dict[tuple[int, ...], tuple[frozenset[int], bool]] = {}
    for queries, alone in zip(asked, own, strict=True):
        for terms in queries:
            fixed = frozenset(old for old, operator, _ in terms if operator == 0)
            columns = tuple(sort_columns(terms, distinct))
            wanted[columns] = fixed, wanted.get(columns, (fixed, False))[1] or not alone
    lists: list[list[int]] = []
    whole: list[bool] = []
    for columns in sorted(wanted, key=lambda c: (not wanted[c][1], -len(c), c)):
        fixed, all_rows = wanted[columns]
        if not any(w >= all_rows and _serves(have, columns, fixed) for have, w in zip(lists, whole, strict=True)):
            lists.append(list(columns) or [0])
            whole.append(all_rows or not columns)
    return (lists, whole) if lists else ([[0]], [True])  # for probes that come later


def _serves(have: Sequence[int], columns: Sequence[int], fixed: frozenset[int]) -> bool:
    return bool(fixed) and set(columns) <= set(have) and set(have[: len(fixed)]) == fixed


def lay_queries(asked: Sequence[Sequence[Sequence[Term]]], rows: SortedRows) -> Queries:
    """The queries of probes, each asked of the order that serves it best.

    A term about a column that the order lacks is left out: more rows are then compared than need be.
    """
    lists = rows.lists
    most = max(map(len, lists), default=0)
    indexes: list[int] = []
    laid: list[list[Term]] = []
    for queries in asked:
        for terms in queries:
            fits = [_fit(lists[i], terms, bool(rows.whole[i]), most) for i in range(len(lists))]
            index = fits.index(max(fits))
            indexes.append(index)
            laid.append([term for term in terms if term[0] in lists[index]])
    return Queries.of_terms(rows, indexes, laid)


def _fit(have: Sequence[int], terms: Sequence[Term], whole: bool, most: int) -> tuple[int, int, int]:
    """How well an order serves a query: fixed columns that it begins with; columns that it has; few others. One that
    isn't whole serves only where it has all columns: else its boxes hold some rows nearly always."""
    fixed = {old for old, operator, _ in terms if operator == 0}
    columns = {old for old, _, _ in terms}
    if not whole and not columns <= set(have):
        return -1, 0, 0
    leading = 0
    while leading < len(have) and have[leading] in fixed:
        leading += 1
    return leading, len(columns & set(have)), most - len(have)
