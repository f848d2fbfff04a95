"""The rules of one table that are worth keeping: candidates from random pairs, counted on all rows, best first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from tuplewise.engine.errors import LimitReached, Wording
from tuplewise.engine.options import ProfileOptions
from tuplewise.engine.profile import measures
from tuplewise.engine.profile.candidates import Columns, Search, parts_of
from tuplewise.engine.profile.counting import CandidateCounts, ColumnComparison
from tuplewise.engine.profile.cover import cover
from tuplewise.engine.profile.keys import single_keys
from tuplewise.engine.profile.rule import Listed, Order, Rule, order_of
from tuplewise.engine.profile.table import ProfiledTable
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import NULL_CODE

T = TypeVar("T")

SEARCHED_ROWS = 1 << 18
"""Rows that candidates are looked for in; all rows count in the end."""
MOST_COUNTED = {"fd": 160, "key": 40, "od": 60}
"""Candidates of a kind that are counted, best first."""
SHARE_OF_SEARCH = 0.6
"""Share of a limited time that candidates are looked for in."""
ROWS_OF_A_GLANCE = 1024
"""Rows that tell which columns may be compared with each other."""
STAGES = ("searching", "counting")


@dataclass(frozen=True, eq=False)
class Profiled:
    """The rules of one table.

    Attributes
    ----------
    listed : shown rules, best first
    held_back : counted candidates that were explained by chance, too weak, or beyond the limit
    partial : whether a limit ended the search
    """

    listed: tuple[Listed, ...]
    held_back: int
    partial: bool
    notes: tuple[str, ...]


class RuleSearch:
    """A search for the rules of a table that are worth keeping; `run` returns them.

    Notes
    -----
    Cost: a grouping of the rows for each column and each pair of columns, at most `MOST_CONTEXTS`; then one for each
    left side of a candidate, and a pass for each of its targets. Memory: some 30 bytes a row beside the codes.
    """

    def __init__(self, table: ProfiledTable, options: ProfileOptions, run: Run) -> None:
        self._table, self._options, self._run = table, options, run
        self._columns = table.relation.columns
        self._held_back, self._partial = 0, False
        self._notes: list[str] = []

    def run(self) -> Profiled:
        rules: list[Rule] = []
        try:
            rules += self._constants()
            rules += single_keys(self._table, self._options.seed)
            rules += self._row_rules()
            search = self._search([rule.left for rule in rules if rule.kind == "key"])
            for step in (self._keys, self._functional, self._orders):
                rules += step(search)
        except LimitReached as reached:
            self._late(f"{reached} before all candidates were counted")
        kept = [rule for rule in rules if rule.score >= measures.LEAST_SCORE]
        self._held_back += len(rules) - len(kept)
        listed = cover(kept, len(self._columns))
        limit = self._options.limit
        if len(listed) > limit:
            best = f"the best {limit:,} of {len(listed):,} rules are listed"
            self._notes.append(Wording("{}; more: {limit}", best, limit=len(listed)))
            self._held_back += len(listed) - limit
        return Profiled(tuple(listed[:limit]), self._held_back, self._partial, (*self._table.notes, *self._notes))

    def _late(self, why: str) -> None:
        self._partial = True
        self._notes.append(f"{why}: there may be more rules")

    def _mind(self, stage: str = STAGES[0], share: float = 0.0) -> None:
        self._run.minded(stage)(share)

    def _constants(self) -> Iterable[Rule]:
        for number, largest in enumerate(self._table.largest.tolist()):
            filled = int(self._table.filled[number])
            if filled < max(2, self._table.count):
                continue
            exceptions = filled - largest
            if exceptions <= measures.MOST_OTHERS * filled:
                strength = 1.0 - exceptions / filled
                score = measures.constant_score(filled) * strength**20
                yield Rule("constant", (), (number,), "", filled, exceptions, float(filled), strength, score)

    def _search(self, single: Sequence[Columns]) -> Search:
        """Candidates of all contexts, or of those that a part of the limited time is enough for, small ones first."""
        table, seed = self._table, self._options.seed
        ordered = [i for i, c in enumerate(self._columns) if c.ordered and table.distinct[i] > 1]
        sample = table.sample(SEARCHED_ROWS, seed)
        search = Search(sample, ordered, list(single), self._options.max_context, seed, table.count)
        contexts = list(search.contexts())
        searching = self._run.part(SHARE_OF_SEARCH)
        for number, context in enumerate(contexts):
            if searching.over():
                self._late(f"{number:,} of {len(contexts):,} sets of columns were looked at in the limited time")
                break
            self._mind(STAGES[0], number / len(contexts))
            search.look(context)
        if search.passed_over:
            self._notes.append(
                f"{len(self._columns):,} columns are too many for all pairs of them: left sides of two "
                "columns were looked for among those with the most values"
            )
        return search

    def _keys(self, search: Search) -> Iterable[Rule]:
        known = [set(key) for key in search.single_keys]
        candidates = sorted(search.found.keys.items(), key=lambda item: (len(item[0]), -item[1], item[0]))
        tried = search.found.tried["key"]
        for columns, counted in self._counted_keys(
            [columns for columns, _ in candidates[: MOST_COUNTED["key"]]], known
        ):
            pairs = counted.evidence * (1.0 - counted.strength)
            enough = (
                counted.rows >= self._table.count / 2 and counted.exceptions <= measures.MOST_DOUBLES * counted.rows
            )
            genuine = counted.strength >= measures.KEY_STRENGTH and counted.evidence >= measures.LEAST_EVIDENCE
            if not (enough and genuine and measures.is_beyond_chance(pairs, counted.evidence, tried)):
                self._held_back += 1
                continue
            known.append(set(columns))
            share = counted.rows / self._table.count
            score = measures.key_score(counted.strength, counted.evidence, len(columns), share)
            yield _rule("key", columns, (), "", counted, score)

    def _counted_keys(
        self, candidates: Sequence[Columns], known: list[set[int]]
    ) -> Iterable[tuple[Columns, CandidateCounts]]:
        """The candidates that no known key is a part of, which may become more on the way."""

        def is_new(columns: Columns) -> bool:
            return not any(key <= set(columns) for key in known)

        for batch in _batches(candidates, self._table.at_once):
            self._mind(STAGES[1])
            new = [columns for columns in batch if is_new(columns)]
            counted = zip(new, self._table.count_keys(new), strict=True)
            yield from (found for found in counted if is_new(found[0]))

    def _functional(self, search: Search) -> Iterable[Rule]:
        best = sorted(search.found.fds.items(), key=lambda item: (-item[1], item[0]))[: MOST_COUNTED["fd"]]
        self._held_back += len(search.found.fds) - len(best)
        targets: dict[Columns, list[int]] = {}
        for (left, target), _ in best:
            targets.setdefault(left, []).append(target)
        tried = search.found.tried["fd"]
        counted: dict[tuple[Columns, int], CandidateCounts] = {}
        for number, batch in enumerate(_batches(list(targets), self._table.at_once)):
            self._mind(STAGES[1], number * self._table.at_once / len(targets))
            wanted: dict[Columns, set[int]] = {}
            for left in batch:
                for side in (left, *parts_of(left)):
                    wanted.setdefault(side, set()).update(t for t in targets[left] if (side, t) not in counted)
            counted |= self._table.count_fds({left: sorted(own) for left, own in wanted.items() if own})
            for left in batch:
                for target in sorted(targets[left]):
                    parts = max((counted[part, target].strength for part in parts_of(left)), default=0.0)
                    yield from self._judged(left, target, counted[left, target], parts, tried)

    def _judged(self, left: Columns, target: int, counted: CandidateCounts, parts: float, tried: int) -> Iterable[Rule]:
        size, need = len(left), counted.strength - parts
        least = measures.least_fd_strength(size, float(self._table.differing[target]))
        strong = counted.strength >= least and counted.evidence >= measures.LEAST_EVIDENCE
        # Contradictions come in twos at most: half of them are sure to be independent of each other.
        contradictions = counted.evidence * (1.0 - counted.strength)
        genuine = measures.is_beyond_chance(contradictions / 2, counted.evidence / 2, tried)
        if not (strong and genuine and (size == 1 or need >= measures.FD_NEED[size])):
            self._held_back += 1
            return
        share = counted.rows / self._table.count
        score = measures.fd_score(counted.strength, counted.evidence, need, size, share)
        yield _rule("fd", left, (target,), "", counted, score)

    def _orders(self, search: Search) -> Iterable[Rule]:
        found = sorted(search.found.orders.items(), key=lambda item: (len(item[0][0]), -abs(item[1]), item[0]))
        self._held_back += max(0, len(found) - MOST_COUNTED["od"])
        # Pairs of columns that are ordered alike everywhere: no context adds to them.
        whole: set[tuple[int, int, bool]] = set()
        for context_size in (0, 1):
            chosen = [item for item in found[: MOST_COUNTED["od"]] if len(item[0][0]) == context_size]
            orders = [(*names, gamma > 0) for names, gamma in chosen if (*names[1:], gamma > 0) not in whole]
            self._mind(STAGES[1])
            contradicting = self._table.contradictions(orders) if orders else []
            for batch in _batches(list(zip(orders, contradicting, strict=True)), self._table.at_once):
                self._mind(STAGES[1])
                for rule in self._ordered(search, *zip(*batch, strict=True)):
                    if not rule.left:
                        whole.add(order_of(rule)[1:])
                    yield rule

    def _ordered(self, search: Search, orders: Sequence[Order], contradicting: Sequence[int]) -> Iterable[Rule]:
        """The order rules of some with so many contradicting pairs that are worth keeping."""
        genuine = []
        for (context, a, b, ascending), counted in zip(
            orders, self._table.count_orders(orders, contradicting), strict=True
        ):
            overall = max(0.0, search.gamma_of_all(a, b) * (1 if ascending else -1) if context else 0.0)
            evidence = counted.evidence * (1.0 - overall)
            contradictions = counted.evidence * (1.0 - counted.strength) / 2
            beyond_chance = measures.is_beyond_chance(contradictions, evidence, search.found.tried["od"])
            if counted.strength >= measures.OD_STRENGTH and evidence >= measures.LEAST_EVIDENCE and beyond_chance:
                need, share = counted.strength - overall, counted.rows / self._table.count
                score = measures.od_score(counted.strength, evidence, need, len(context), share)
                sense = "ascending" if ascending else "descending"
                genuine.append(replace(_rule("od", context, (a, b), sense, counted, score), evidence=evidence))
        broken = [order_of(rule) for rule in genuine if rule.exceptions]
        removed = iter(self._table.rows_to_remove(broken) if broken else [])
        genuine = [replace(rule, exceptions=next(removed)) if rule.exceptions else rule for rule in genuine]
        kept = [rule for rule in genuine if rule.exceptions <= measures.MOST_OUT_OF_ORDER * rule.rows]
        self._held_back += len(orders) - len(kept)
        return kept

    def _row_rules(self) -> Iterable[Rule]:
        for pairs in _batches(list(self._comparable()), self._table.at_once):
            self._mind()
            for (a, b), found in zip(pairs, self._table.compare_columns(pairs), strict=True):
                yield from self._compared(a, b, found)

    def _comparable(self) -> Iterable[tuple[int, int]]:
        """Pairs of columns of one domain that look ordered, or equal, in a few rows of the table."""
        domains = np.array([column.domain for column in self._columns])
        varying = self._table.distinct > 1
        if len(domains[varying]) == len(set(domains[varying])):
            return
        codes = self._table.glance(ROWS_OF_A_GLANCE, self._options.seed)
        for a in np.flatnonzero(varying).tolist():
            others = np.flatnonzero(varying & (domains == domains[a]))
            others = others[others > a]
            known = (codes[others] != NULL_CODE) & (codes[a] != NULL_CODE)
            few = 2 * measures.MOST_ROW_EXCEPTIONS * known.sum(axis=1) + 2
            above, below = codes[a] > codes[others], codes[a] < codes[others]
            for broken in (above, below):
                broken &= known
            counts = np.array([above.sum(axis=1), below.sum(axis=1), (above | below).sum(axis=1)])
            yield from ((a, int(b)) for b in others[(counts <= few).any(axis=0)])

    def _compared(self, a: int, b: int, found: ColumnComparison) -> Iterable[Rule]:
        """What holds between two columns of a row: equal, or one at most (or below) the other."""
        columns = self._columns
        count, below = found.rows, "<" if not found.equal else "<="
        candidates = [(a, b, "==", count - found.equal, count - found.equal_by_chance)]
        if columns[a].ordered:
            candidates += [
                (a, b, below, found.above, found.above_by_chance),
                (b, a, below, found.below, found.below_by_chance),
            ]
        tried = 3 * len(columns) * len(columns)
        for left, right, sense, exceptions, by_chance in candidates:
            if by_chance < measures.LEAST_EVIDENCE or exceptions > measures.MOST_ROW_EXCEPTIONS * count:
                continue
            strength = 1.0 - exceptions / by_chance
            if strength < measures.ROW_STRENGTH or not measures.is_beyond_chance(exceptions, by_chance, tried):
                continue
            worth = measures.equality_score if sense == "==" else measures.row_score
            score = worth(strength, by_chance, count / self._table.count)
            yield Rule("row", (left,), (right,), sense, count, exceptions, by_chance, strength, score)
            if sense == "==":
                return


def _batches(candidates: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (candidates[i : i + size] for i in range(0, len(candidates), size))


def _rule(kind: str, left: Columns, right: Columns, sense: str, counted: CandidateCounts, score: float) -> Rule:
    return Rule(kind, left, right, sense, counted.rows, counted.exceptions, counted.evidence, counted.strength, score)  # type: ignore[arg-type]
