"""Deletions: search again for clues whose pair of rows was deleted, and decide new hitting sets on the table.

If no other pair leaves such a clue, its edge is removed, and hitting sets that miss it may be new. If the search ended
early, the clue may still exist, and probes whose predicates it satisfies promise nothing any more. A new hitting set
that contains a promised probe holds. Any other is checked on the table, and the clues of its violations are learnt.

Few checks are needed. Let a new hitting set X miss the removed edges R, and let a living pair with edge u violate X. If
for each e in R there were a vertex v(e) in e outside u, X with these vertices would hit all edges that were there
before; so it would contain a hitting set that holds, which u would miss. So u contains some e of R. In each group it
has the vertices of e, or all of them, which needs a null; then X has none of that group. Hence a set Y that holds,
misses e and has no vertices in columns with nulls but in groups where X has some, would be violated by this pair too.
So if there is such a Y for each e of R, X holds; without nulls, one Y for each e is enough for all sets.

Source: the conditions for deletions in this project's notes; no published tool of its kind handles them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.clue_set import WitnessedClues
from tuplewise.engine.dc.incremental.column_set_index import ColumnSetIndex, contains_some, unprobed
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.initial import search
from tuplewise.engine.dc.incremental.revision import Known, among
from tuplewise.engine.dc.vertices import Sets, Vertices
from tuplewise.engine.dc.violations.existence import find_witnesses
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.column_set_index import LEAST_OF_A_ROW, ClueTable, Comparing, Met, terms_of_clue
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.hitting import RevisedSets, extend_hitting_sets, mirrored, without_edges
from tuplewise.gpu_kernels.words import mirror_clues

MOST_SOUGHT = 256  # most lost clues to search for one by one; with more, everything is recomputed
MOST_DECIDED = 64  # most new hitting sets to decide one by one
WITNESSES = 16  # violating pairs returned for a violated set
SAMPLED_BLOCKS = 256  # of pairs to look at first: nearly every set of a clue that was lost is violated by many pairs
SEEK_COMPARISONS = 100_000  # for one clue: where a check decides many sets, searching on costs more than that
SOUGHT_IN_FULL = 4  # lost clues; of more, each gets less
SEEK_LONGER = 10  # times as many where a check decides one set only
SEEK_COMPARISONS_A_ROW = 400  # likewise, of tables so small that this is fast: the search is then complete
SMALL_ROWS = 1 << 16
MOST_TAIL = 2048  # most rows since the checkpoint to compare with each other in a search for clues


@dataclass(eq=False)
class _Search:
    """What the searches for the clues of a revision share.

    Attributes
    ----------
    most : comparisons for each clue
    tried : int32, living rows in random order, as many as so many comparisons allow
    tail : int32, the living rows since the checkpoint
    all_rows : whether `tried` are all
    met : the clues of the tail's rows with each other; None: not yet compared
    """

    most: int
    tried: NDArray[np.int32]
    tail: NDArray[np.int32]
    all_rows: bool
    met: Met | None = None


class _Doubted:
    """Removed edges that some living pair may still leave.

    Parameters
    ----------
    edges : uint64 (removed, words)
    with_nulls : uint64 (groups, words), the vertices of each group whose columns have nulls
    """

    def __init__(self, edges: Sets, with_nulls: Sets) -> None:
        self._edges, self._with_nulls = edges, with_nulls
        self._met = np.zeros(len(edges), dtype=np.bool_)
        none = np.zeros((0, len(with_nulls)), dtype=np.bool_)
        self._proofs = [none] * len(edges)  # of each edge, the groups with nulls of sets that hold and miss it

    def _groups(self, sets: Sets) -> NDArray[np.bool_]:
        """In which groups with nulls each set has vertices: bool (sets, groups)."""
        found = np.zeros((len(sets), len(self._with_nulls)), dtype=np.bool_)
        for place, group in enumerate(self._with_nulls):
            found[:, place] = np.any(sets & group, axis=1)
        return found

    def easiest(self, sets: Sets, effort: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of sets whose checks tell most: for each edge in doubt, of those that miss it the ones with the
        fewest groups with nulls, and the easiest of these."""
        groups = self._groups(sets)
        order = np.lexsort((effort, groups.sum(axis=1)))
        chosen = set()
        for place, edge in enumerate(self._edges):
            taken = self._proofs[place]
            for number in order[~np.any(sets[order] & edge, axis=1)].tolist() if not self._met[place] else ():
                if not _some_within(taken, groups[[number]])[0]:
                    chosen.add(number)
                    taken = np.concatenate([taken, groups[[number]]])
        return np.array(sorted(chosen), dtype=np.int64)

    def missed_by(self, sets: Sets) -> NDArray[np.bool_]:
        """bool (sets,): which miss an edge that is in doubt for them."""
        groups, missed = self._groups(sets), np.zeros(len(sets), dtype=np.bool_)
        for place in np.flatnonzero(~self._met).tolist():
            missing = ~np.any(sets & self._edges[place], axis=1)
            missed |= missing & ~_some_within(self._proofs[place], groups)
        return missed

    def rule_out(self, mask: NDArray[np.uint64]) -> None:
        """No pair leaves the edges that a set misses: it holds."""
        groups = self._groups(mask[None, :])
        for place in np.flatnonzero(~np.any(self._edges & mask, axis=1)).tolist():
            self._proofs[place] = np.concatenate([self._proofs[place], groups])

    def meet(self, edges: Sets) -> None:
        """Some pairs leave these edges."""
        self._met |= among(self._edges, edges)

    def settled(self, edges: Sets) -> bool:
        """Whether it is known of each of these whether some pair leaves it."""
        known = self._met | np.array([len(proofs) > 0 for proofs in self._proofs], dtype=np.bool_)
        return bool(among(edges, self._edges[known]).all())


def _some_within(proofs: NDArray[np.bool_], groups: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool (sets,): whether the groups of some proof, bool (proofs, groups), are among those of each set."""
    return np.asarray(np.any(np.all(proofs[None, :, :] <= groups[:, None, :], axis=2), axis=1))


def _hit_by_all(sets: Sets, edges: Sets) -> NDArray[np.bool_]:
    """bool (sets,): which hit all edges."""
    hit = np.ones(len(sets), dtype=np.bool_)
    for edge in edges:
        hit &= np.any(sets & edge, axis=1)
    return hit


class Deciding:
    """Decisions on the held rows that are alive. `relation` returns these rows as a Relation, of some columns only."""

    def __init__(
        self, held: HeldRows, fixed: Fixed, vertices: Vertices, relation: Callable[..., Relation], device: Device,
        comparing: Comparing,
    ) -> None:  # fmt: skip
        self._held, self._fixed, self._vertices = held, fixed, vertices
        self._relation, self._device, self._comparing = relation, device, comparing

    def extend(self, sets: Sets, edges: Sets, new_edges: Sets) -> RevisedSets | None:
        """Hitting sets after adding edges; None if they don't change."""
        if not len(new_edges):
            return None
        found = extend_hitting_sets(sets, edges, new_edges, self._vertices.wanted)
        return None if len(found.sets) == len(sets) and (found.kept >= 0).all() else found

    def after_loss(
        self, before: Known, edges: Sets, gone: NDArray[np.bool_], clues: WitnessedClues, old_table: ClueTable,
        table: ClueTable,
    ) -> tuple[Known, NDArray[np.bool_]]:  # fmt: skip
        """Knowledge after some clues lost their pairs of rows, and the removed clues, bool (old clues,).

        Parameters
        ----------
        before, edges : the old knowledge, and the edges of its clues
        gone : bool (old clues,), the lost clues
        clues : the other clues, and clues met with inserted rows
        old_table, table : the old clues and `clues`, by number
        """
        old = before.clues
        lost = np.flatnonzero(gone)
        lost = old.one_of_each_pair(lost, old_table)
        lost = lost[table.numbers_of(old.clues[lost]) < 0]
        if len(lost) > MOST_SOUGHT:
            return self._anew(before)
        promised = before.index.promised.copy()
        unsettled: list[Sets] = []  # the edges of a clue and its mirror that were not sought among all pairs
        groups = self._groups_with_nulls()
        search = self._search_for(len(lost), longer=groups is None) if len(lost) else None
        for number in lost.tolist():
            assert search is not None
            t, u, complete = self._seek(old.clues[number], search)
            if t >= 0:
                rows = np.array([[t, u]], dtype=np.int32)
                clues = clues.with_met(Met(old.clues[number][None, :], rows, np.zeros(0, np.int64)), table)
            elif not complete:
                both = np.stack([old.clues[number], mirror_clues(old.clues[number][None, :], old.layout)[0]])
                unsettled.append(self._vertices.edge_of_each(both))
                promised &= _hit_by_all(before.index.probes, unsettled[-1])
        removed = old.clues[gone][table.numbers_of(old.clues[gone]) < 0]
        fresh = clues.clues[len(old) - int(gone.sum()) :]
        fresh = fresh[old_table.numbers_of(fresh) < 0]
        extended = self.extend(before.sets, edges, self._vertices.edges_of(fresh))
        sets = before.sets if extended is None else extended.sets
        index = before.index
        if not (promised == index.promised).all():
            index = replace(index, promised=promised)
        if len(removed):
            edges = self._vertices.edges_of(clues.clues)
            found = without_edges(sets, edges, self._vertices.edges_of(removed), self._vertices.wanted)
            open_ = found.kept < 0
            open_ &= ~index.promise(found.sets)
            doubted = None if groups is None else _Doubted(self._vertices.edges_of(removed), groups)
            decided = self._decide(found.sets, open_, clues, table, edges, index, doubted)
            if decided is None:
                return self._anew(before)
            sets, clues, index = decided
            if doubted is not None:
                still = [pair for pair in unsettled if not doubted.settled(pair)]
                kept = [_hit_by_all(before.index.probes, pair) for pair in still]
                promised = np.logical_and.reduce([before.index.promised, *kept])
                index = replace(index, promised=np.concatenate([promised, index.promised[len(promised) :]]))
        return Known(clues, sets, np.zeros(len(sets), dtype=np.int64), index), gone

    def _groups_with_nulls(self) -> Sets | None:
        """The vertices of each group whose columns have nulls; None where a check decides one set only: sizes of
        constraints are limited, or nulls have outcomes of their own."""
        held, space, options = self._held, self._fixed.space, self._fixed.options.discover
        nulls = held.codes[: held.used] < 0
        columns = np.asarray(nulls.any(axis=0))
        if columns.any():
            columns = np.asarray(nulls[held.alive[: held.used]].any(axis=0))
        if options.max_predicates is not None or (options.nulls == "value" and columns.any()):
            return None
        groups = np.flatnonzero(columns[space.left] | columns[space.right])
        return self._vertices.wanted.group_masks[groups]

    def _search_for(self, clues: int, *, longer: bool) -> _Search:
        """What the searches for so many lost clues share."""
        living = np.flatnonzero(self._held.alive[: self._held.used]).astype(np.int32)
        most = SEEK_COMPARISONS * SEEK_LONGER if longer else SEEK_COMPARISONS // max(1, clues // SOUGHT_IN_FULL)
        if longer and len(living) <= SMALL_ROWS:
            most = max(most, SEEK_COMPARISONS_A_ROW * len(living))
        rows = min(len(living), most // LEAST_OF_A_ROW + 1)
        drawn = np.random.default_rng(len(living)).choice(len(living), rows, replace=False, shuffle=rows == len(living))
        return _Search(most, living[drawn], living[living >= self._held.base], rows == len(living))

    def _seek(self, clue: NDArray[np.uint64], search: _Search) -> tuple[int, int, bool]:
        """Find a living pair of rows that leaves a clue, or -1; and whether all pairs were examined."""
        held, complete = self._held, True
        mirror = mirror_clues(clue[None, :], self._fixed.space.layout)[0]
        if held.base:
            if self._index_for(clue) < 0:
                return -1, -1, False
            for wanted, rows, swapped in ((clue, search.tried, False), (mirror, search.tail, True)):
                t, u, whole = self._comparing.seek(
                    held.codes, held.alive, rows, wanted, held.sorted_rows, self._index_for(wanted), search.most
                )
                if t >= 0:
                    return (u, t, True) if swapped else (t, u, True)
                complete &= whole and (swapped or search.all_rows)
        if len(search.tail) > MOST_TAIL:
            return -1, -1, False
        if search.met is None:  # once for all clues
            nothing = ClueTable(np.zeros((0, len(clue)), dtype=np.uint64))
            search.met, _ = self._comparing.scan(
                held.codes, held.alive, search.tail, held.base, held.used, held.scanned, nothing, only_before=True
            )
        for wanted, order in ((clue, (0, 1)), (mirror, (1, 0))):
            at = np.flatnonzero(np.all(search.met.clues == wanted, axis=1))
            if len(at):
                t, u = search.met.rows[at[0], list(order)].tolist()
                return t, u, True
        return -1, -1, complete

    def _index_for(self, clue: NDArray[np.uint64]) -> int:
        """The order of all rows that puts the partners of a given row for a clue closest together; -1 if there is
        none."""
        fixed = {old for old, operator, _ in terms_of_clue(clue, self._fixed.space.layout) if operator == 0}
        rows = self._held.sorted_rows
        best, most = -1, -1.0
        for i in np.flatnonzero(rows.whole).tolist():
            columns = rows.columns_of(i).tolist()
            leading = next((k for k, c in enumerate(columns) if c not in fixed), len(columns))
            if leading + len(columns) / 1000 > most:
                best, most = i, leading + len(columns) / 1000
        return best

    def _decide(
        self,
        sets: Sets,
        open_: NDArray[np.bool_],
        clues: WitnessedClues,
        table: ClueTable,
        edges: Sets,
        index: ColumnSetIndex,
        doubted: _Doubted | None,
    ) -> tuple[Sets, WitnessedClues, ColumnSetIndex] | None:
        """Check open hitting sets on the table until none is violated, and return hitting sets that all hold.

        `doubted`: None where a check decides one set only. None is returned if there are too many sets to check.
        """
        proven: list[NDArray[np.uint64]] = []
        numbers = self._held.living_rows
        relation: Relation | None = None
        ranked: set[int] = set()  # its columns
        while open_.any():
            candidates = np.flatnonzero(open_)
            if doubted is not None:
                effort = self._effort(sets[candidates])
                telling = doubted.easiest(sets[candidates], effort)
                candidates = candidates[telling[np.argsort(effort[telling], kind="stable")[:1]]]
            if len(candidates) > MOST_DECIDED:
                return None
            rules = self._vertices.rules(sets[candidates])
            if relation is None or not ranked.issuperset(self._columns_of(sets[candidates])):
                ranked.update(self._columns_of(sets[open_]))
                relation = self._relation(sorted(ranked))
            found = find_witnesses(
                relation, rules, nulls=self._fixed.options.discover.nulls,
                limit=WITNESSES, sampled=SAMPLED_BLOCKS, device=self._device,
            )  # fmt: skip
            pairs = []
            for candidate, rows in zip(candidates.tolist(), found, strict=True):
                if not sets[candidate].any() and len(numbers) > 1:  # no predicates: every pair violates it
                    rows = np.array([[0, 1]], dtype=np.int64)
                if not len(rows):
                    proven.append(sets[candidate])
                    open_[candidate] = False
                    if doubted is not None:
                        doubted.rule_out(sets[candidate])
                        if self._vertices.wanted.symmetric:
                            doubted.rule_out(mirrored(sets[candidate][None, :], self._vertices.wanted.mirror)[0])
                    continue
                rows = rows.copy()
                alone = rows[:, 1] < 0  # a rule about one row: any other row will do
                rows[alone, 1] = np.where(rows[alone, 0] == 0, min(1, len(numbers) - 1), 0)
                pairs.append(numbers[rows])
            if doubted is not None:
                follow = open_ & ~doubted.missed_by(sets)
                proven += list(sets[follow])
                open_ &= ~follow
            if not pairs:
                if doubted is None:
                    break
                continue
            violating = np.concatenate(pairs).astype(np.int32)
            t, u = (np.ascontiguousarray(violating[:, side]) for side in (0, 1))
            before = len(clues)
            met = Met(self._comparing.of_pairs(self._held.codes, t, u), violating, np.zeros(0, np.int64))
            clues = clues.with_met(met, table)
            new_edges = self._vertices.edges_of(clues.clues[before:])
            if doubted is not None:
                doubted.meet(new_edges)
            still = sets[open_]
            extended = self.extend(sets, edges, new_edges)
            assert extended is not None  # a pair that violates a set leaves an edge that the set misses
            edges = np.concatenate([edges, new_edges])
            sets = extended.sets
            open_ = (extended.kept < 0) | among(sets, still)
            open_ &= ~index.promise(sets)
            if proven:
                open_ &= ~contains_some(sets, np.array(proven))
        if proven:
            masks = np.array(proven)
            index = index.with_own(masks[unprobed(masks, index.probes, self._vertices)])
        return sets, clues, index

    def _effort(self, sets: Sets) -> NDArray[np.int64]:
        """How costly checking each set is, int64 (sets,): predicates that are no equalities count most."""
        predicates, sizes = self._vertices.predicates_of(sets)
        space = self._fixed.space
        operators = np.where(predicates >= 0, space.predicate_operator[predicates], 0)
        unequal = np.count_nonzero(operators == 1, axis=1)
        return np.asarray(64 * (np.count_nonzero(operators, axis=1) + unequal) + sizes)

    def _columns_of(self, sets: Sets) -> list[int]:
        """The columns that some sets are about, one at least."""
        space = self._fixed.space
        used = np.any(self._vertices.wanted.group_masks & np.bitwise_or.reduce(sets, axis=0), axis=1)
        return sorted({*space.left[used].tolist(), *space.right[used].tolist()}) or [0]

    def _anew(self, before: Known) -> tuple[Known, NDArray[np.bool_]]:
        """Recompute the knowledge from all rows."""
        relation, numbers = self._relation(), self._held.living_rows
        clues, sets, exhausted, _ = search(relation, self._fixed.space, self._vertices)
        clues = replace(clues, witnesses=numbers[clues.witnesses].astype(np.int32))
        masks = before.index.probes
        promised = contains_some(masks, exhausted) | contains_some(masks, sets)
        index = replace(before.index, promised=promised).with_own(sets[unprobed(sets, masks, self._vertices)])
        known = Known(clues, sets, np.zeros(len(sets), dtype=np.int64), index)
        return known, np.ones(len(before.clues), dtype=np.bool_)
