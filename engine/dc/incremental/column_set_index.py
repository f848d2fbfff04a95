"""The column-set index of a state: which old rows a new one is compared with, and how these are looked up.

A *probe* is a set of predicates. A new row is compared with all rows with which it satisfies a probe, in either order.
Only such pairs can violate a constraint that contains the probe. So where each minimal hitting set contains a probe,
the clues of all violating new pairs are found. A constraint that replaces a violated one contains it, and its probe.

A probe is *promised* when the clue set has the clue of every living pair that satisfies it: then every hitting set that
contains it holds. Inserting keeps promises; deleting may break some (deciding.py).

Source: SelectIndex of IncDC (Qian et al., VLDB Journal 2023, section 7). Departures: up to four equalities make one
probe; its cost is estimated from agreeing pairs of a sample, not from the share of distinct values; and a constraint
that no equality serves is a probe with all of its predicates, not with two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.column_sets import best_set, list_subsets, unpacked
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.local_table import count_agreeing
from tuplewise.gpu_kernels.column_set_index import EXCHANGED, SortedRows
from tuplewise.gpu_kernels.column_set_types import Queries, Term
from tuplewise.gpu_kernels.word_hash import mix_word
from tuplewise.gpu_kernels.words import ACROSS

# What is chosen depends on the ratios of these only.
QUERY_SECONDS = 1.5e-6  # to look up a box of rows
PAIR_SECONDS = 1e-7  # to fetch and compare a row of a box
OWN_SECONDS = 4e-6  # for a constraint that is a probe of its own
SCANNED_PAIR_SECONDS = 1.2e-8  # to compare with the next row in memory
MOST_COLUMN_PAIRS = 4  # equalities of a probe
SAMPLED_SETS = 4000  # hitting sets that a choice looks at; of more, so many at random
SAMPLED_ROWS = 1 << 15  # rows that agreeing pairs are estimated from
LEAST_ROWS = 4096  # with fewer, a new row is compared with all


@dataclass(frozen=True, eq=False)
class ColumnSetIndex:
    """The chosen probes.

    Attributes
    ----------
    probes : uint64 (probes, words), vertices of each
    promised : bool (probes,)
    own : bool (probes,), which were hitting sets themselves when they were chosen
    seconds : estimated cost of a new row
    """

    probes: Sets
    promised: NDArray[np.bool_]
    own: NDArray[np.bool_]
    seconds: float = 0.0

    def with_own(self, sets: Sets) -> ColumnSetIndex:
        """The index with hitting sets that hold as further probes: no pair satisfies them, so they are promised."""
        if not len(sets):
            return self
        new = np.ones(len(sets), dtype=np.bool_)
        probes = np.concatenate([self.probes, sets])
        promised, own = (np.concatenate([flags, new]) for flags in (self.promised, self.own))
        return ColumnSetIndex(probes, promised, own, self.seconds)

    def promise(self, sets: Sets) -> NDArray[np.bool_]:
        """bool (sets,): which contain a promised probe."""
        return contains_some(sets, self.probes[self.promised])


def serves(index: ColumnSetIndex, rows: int) -> bool:
    """Whether looking up the partners of a new row costs less than comparing it with all rows, and counting."""
    return rows >= LEAST_ROWS and index.seconds <= SCANNED_PAIR_SECONDS * rows / 2


def contains_some(sets: Sets, parts: Sets) -> NDArray[np.bool_]:
    """bool (sets,): which contain one of some sets."""
    found = np.zeros(len(sets), dtype=np.bool_)
    for part in parts:
        found |= np.all(sets & part == part, axis=1)
    return found


def unprobed(sets: Sets, probes: Sets, vertices: Vertices) -> NDArray[np.bool_]:
    """bool (sets,): which contain no probe. Sets about one row are left out: any pair of the row shows these."""
    alone = vertices.about_one_row(sets) & np.any(sets, axis=1)
    return np.asarray(~contains_some(sets, probes) & ~alone)


def choose_index(
    sets: Sets, vertices: Vertices, codes: NDArray[np.int32], promised: Sets, *, keep_nulls: bool, seed: int = 0
) -> ColumnSetIndex:
    """An index in which each hitting set contains a probe, or is about one row.

    Greedy: the next probe is the set of equalities that serves most hitting sets for its cost, sets / seconds, as long
    as that beats each of these sets as a probe of its own, 1 / OWN_SECONDS.

    Parameters
    ----------
    sets : minimal hitting sets, of which one of each mirror pair suffices
    codes : int32 (rows, columns), of all rows or a sample; costs are estimated from some of them
    promised : promised sets of vertices; a probe that contains one of them, or a hitting set, is promised too

    Notes
    -----
    Cost: subsets of the equalities of some thousands of sets, and a count of agreeing pairs of the sample for each that
    could be the best.
    """
    rng = np.random.default_rng(seed)
    open_ = sets[unprobed(sets, sets[:0], vertices)]
    rows = len(codes)
    sample = codes if rows <= SAMPLED_ROWS else codes[np.sort(rng.choice(rows, SAMPLED_ROWS, replace=False))]
    sample = np.ascontiguousarray(sample)
    scale = rows / max(1, len(sample)) * 2 / max(1, len(sample))  # pairs of a row, for each pair of the sample

    def pairs_of(code: int) -> float:
        return scale * _agreeing(sample, vertices, unpacked(code), keep_nulls)

    chosen: list[NDArray[np.uint64]] = []
    seconds = 0.0
    while len(open_):
        share = max(1.0, len(open_) / SAMPLED_SETS)
        looked_at = open_ if share == 1.0 else open_[rng.choice(len(open_), SAMPLED_SETS, replace=False)]
        codes_, owners = list_subsets(np.ascontiguousarray(vertices.agreements(looked_at)), MOST_COLUMN_PAIRS)
        codes_, place = np.unique(codes_, return_inverse=True)
        before = len(chosen)
        unserved = np.ones(len(looked_at), dtype=np.bool_)
        pairs = np.full(len(codes_), np.nan)
        while True:
            served = share * np.bincount(place, weights=unserved[owners], minlength=len(codes_))
            best = best_set(codes_, np.float64(OWN_SECONDS) * served, pairs, _price, pairs_of)
            if best is None:
                break
            seconds += float(_price(pairs[best]))
            chosen.append(vertices.equalities(list(unpacked(int(codes_[best])))))
            unserved &= ~contains_some(looked_at, chosen[-1][None, :])
        open_ = open_[~contains_some(open_, np.array(chosen[before:]).reshape(-1, vertices.words))]
        if share == 1.0 or len(chosen) == before:
            break
    probes = np.concatenate([np.array(chosen, dtype=np.uint64).reshape(-1, vertices.words), open_])
    seconds += OWN_SECONDS * len(open_)
    own = np.arange(len(probes)) >= len(chosen)
    return ColumnSetIndex(probes, own | contains_some(probes, promised), own, seconds)


def _price(pairs: Any) -> Any:
    """Seconds that a probe costs for each new row, where so many pairs of a row satisfy it."""
    return QUERY_SECONDS + PAIR_SECONDS * pairs


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
        keys = mix_word(keys, (column.astype(np.int64) + 2).astype(np.uint64))
    return np.unique(keys, return_counts=True)


def terms_of(probes: Sets, vertices: Vertices) -> list[list[list[Term]]]:
    """The queries of each probe for old rows, the new row being t, and u; one query where both are alike."""
    space = vertices.space
    predicates, sizes = vertices.predicates_of(probes)
    terms = []
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
        terms.append([as_t] if sorted(as_t) == sorted(as_u) else [as_t, as_u])
    return terms


def sort_columns(terms: Sequence[Term], distinct: Sequence[int]) -> list[int]:
    """The columns of a query in the order that rows are best sorted by: those that it fixes; then those of few values,
    as what must differ is nearly fixed there."""
    kinds: dict[int, int] = {}
    for old, operator, _ in terms:
        kinds[old] = min(kinds.get(old, 2), min(operator, 2))
    return sorted(kinds, key=lambda c: (kinds[c], distinct[c] if kinds[c] else -distinct[c], c))


def column_lists(
    terms: Sequence[Sequence[Sequence[Term]]], own: Sequence[bool], distinct: Sequence[int]
) -> tuple[list[list[int]], list[bool]]:
    """By which columns rows are to be sorted for some probes, and whether all rows are needed in each order.

    A query goes without its own order where another one has all of its columns and begins with those that it fixes.
    `own`: which probes are constraints that hold; their boxes are nearly always empty, so that of rows that are equal
    in the columns of an order some will do. There is one order at least.
    """
    wanted: dict[tuple[int, ...], tuple[frozenset[int], bool]] = {}
    for queries, alone in zip(terms, own, strict=True):
        for query in queries:
            fixed = frozenset(old for old, operator, _ in query if operator == 0)
            columns = tuple(sort_columns(query, distinct))
            wanted[columns] = fixed, wanted.get(columns, (fixed, False))[1] or not alone
    lists: list[list[int]] = []
    whole: list[bool] = []
    for columns in sorted(wanted, key=lambda c: (not wanted[c][1], -len(c), c)):
        fixed, all_rows = wanted[columns]
        if not any(w >= all_rows and _serves(have, columns, fixed) for have, w in zip(lists, whole, strict=True)):
            lists.append(list(columns) or [0])
            whole.append(all_rows or not columns)
    return (lists, whole) if lists else ([[0]], [True])  # for probes that come later


def sort_orders(
    index: ColumnSetIndex, vertices: Vertices, distinct: Sequence[int], key: list[int]
) -> tuple[list[list[int]], list[bool]]:
    """As `column_lists`, of an index; and last by the columns of the key, if there are any.

    `distinct`: number of values of each column; empty where pairs are counted, which takes no orders.
    """
    lists, whole = list[list[int]](), list[bool]()
    if distinct:
        lists, whole = column_lists(terms_of(index.probes, vertices), index.own.tolist(), distinct)
    return ([*lists, key], [*whole, True]) if key else (lists, whole)


def _serves(have: Sequence[int], columns: Sequence[int], fixed: frozenset[int]) -> bool:
    return bool(fixed) and set(columns) <= set(have) and set(have[: len(fixed)]) == fixed


def lay_queries(terms: Sequence[Sequence[Sequence[Term]]], rows: SortedRows) -> Queries:
    """The queries of probes, each asked of the order that serves it best.

    A term about a column that the order lacks is left out: more rows are then compared than need be.
    """
    lists = rows.lists
    most = max(map(len, lists), default=0)
    indexes: list[int] = []
    laid: list[list[Term]] = []
    for queries in terms:
        for query in queries:
            fits = [_fit(lists[i], query, bool(rows.whole[i]), most) for i in range(len(lists))]
            index = fits.index(max(fits))
            indexes.append(index)
            laid.append([term for term in query if term[0] in lists[index]])
    return Queries.of_terms(lists, indexes, laid)


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
