"""The rules of one table that are worth keeping: candidates from random pairs, counted on all rows, best first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuplewise.engine.options import DcCheckOptions, ProfileOptions
from tuplewise.engine.profile import counting, measures
from tuplewise.engine.profile.candidates import Columns, Search
from tuplewise.engine.profile.cover import cover
from tuplewise.engine.profile.keys import single_keys
from tuplewise.engine.profile.orders import order_constraint
from tuplewise.engine.profile.rows import Rows
from tuplewise.engine.profile.rule import Listed, Rule
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import NULL_CODE, Relation
from tuplewise.gpu_kernels.device import Device

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
    """What a profile of one table found.

    Attributes
    ----------
    listed : rules that are shown, best first
    held_back : candidates counted that were no more than chance, too weak, or beyond the limit
    partial : whether a limit came first
    """

    listed: tuple[Listed, ...]
    held_back: int
    partial: bool
    notes: tuple[str, ...]


class _Over(Exception):
    """The time limit came."""


def profile_table(
    relation: Relation,
    options: ProfileOptions,
    device: Device,
    run: Run,
) -> Profiled:
    """The rules of a table that are worth keeping.

    Notes
    -----
    Cost: a grouping of the rows for each column and each pair of columns, at most `MOST_CONTEXTS`; then one for each
    left side of a candidate, and a pass for each of its targets. Memory: some 30 bytes a row beside the codes.
    """
    return _Profile(relation, options, device, run).run()


class _Profile:
    def __init__(self, relation: Relation, options: ProfileOptions, device: Device, run: Run) -> None:
        self._relation, self._options, self._run = relation, options, run
        self._rows = Rows(relation, options.nulls, device)
        self._searched = self._rows if self._rows.count <= SEARCHED_ROWS else self._sample(device)
        self._held_back, self._partial = 0, False
        self._notes: list[str] = []
        self._strength: dict[tuple[Columns, int], float] = {}

    def run(self) -> Profiled:
        rules: list[Rule] = []
        try:
            rules += self._constants()
            rules += single_keys(self._relation, self._rows, self._options.seed)
            rules += self._row_rules()
            search = self._search([rule.left for rule in rules if rule.kind == "key"])
            for step in (self._keys, self._functional, self._orders):
                rules += step(search)
        except _Over:
            self._late("the time limit came before all candidates were counted")
        worth = [rule for rule in rules if rule.score >= measures.LEAST_SCORE]
        self._held_back += len(rules) - len(worth)
        listed = cover(worth, len(self._relation.columns))
        limit = self._options.limit
        self._held_back += max(0, len(listed) - limit)
        return Profiled(tuple(listed[:limit]), self._held_back, self._partial, tuple(self._notes))

    def _sample(self, device: Device) -> Rows:
        chosen = np.random.default_rng(self._options.seed).choice(self._rows.count, SEARCHED_ROWS, replace=False)
        chosen.sort()
        part = replace(self._relation, codes=np.ascontiguousarray(self._relation.codes[:, chosen]))
        return Rows(part, self._options.nulls, device)

    def _late(self, why: str) -> None:
        self._partial = True
        self._notes.append(f"{why}: there may be more rules")

    def _mind(self, stage: str = STAGES[0], share: float = 0.0) -> None:
        self._run.tell(stage, share)
        if self._run.over():
            raise _Over

    def _constants(self) -> Iterable[Rule]:
        for number, counts in enumerate(self._rows.values):
            filled = int(self._rows.filled[number])
            if filled < max(2, self._rows.count):
                continue
            exceptions = filled - int(counts[0])
            if exceptions <= measures.MOST_OTHERS * filled:
                strength = 1.0 - exceptions / filled
                score = measures.constant_score(filled) * strength**20
                yield Rule("constant", (), (number,), "", filled, exceptions, float(filled), strength, score)

    def _search(self, single: Sequence[Columns]) -> Search:
        """Candidates of all contexts, or of those that a part of the limited time is enough for, small ones first."""
        ordered = [i for i, c in enumerate(self._relation.columns) if c.ordered and self._rows.distinct[i] > 1]
        search = Search(
            self._searched, ordered, list(single), self._options.max_context, self._options.seed, self._rows.count
        )
        contexts = list(search.contexts())
        searching = self._run.part(SHARE_OF_SEARCH)
        for number, context in enumerate(contexts):
            if searching.over():
                self._late(f"{number:,} of {len(contexts):,} sets of columns were looked at in the limited time")
                break
            self._run.tell(STAGES[0], number / len(contexts))
            search.look(context)
        if search.passed_over:
            self._notes.append(
                f"{len(self._relation.columns):,} columns are too many for all pairs of them: left sides of two "
                "columns were looked for among those with the most values"
            )
        return search

    def _keys(self, search: Search) -> Iterable[Rule]:
        known = [set(key) for key in search.single_keys]
        candidates = sorted(search.found.keys.items(), key=lambda item: (len(item[0]), -item[1], item[0]))
        tried = search.found.tried["key"]
        for columns, _ in candidates[: MOST_COUNTED["key"]]:
            if any(key <= set(columns) for key in known):
                continue
            self._mind(STAGES[1])
            counted = counting.count_key(self._rows, columns)
            pairs = counted.evidence * (1.0 - counted.strength)
            enough = counted.rows >= self._rows.count / 2 and counted.exceptions <= measures.MOST_DOUBLES * counted.rows
            genuine = counted.strength >= measures.KEY_STRENGTH and counted.evidence >= measures.LEAST_EVIDENCE
            if not (enough and genuine and measures.is_beyond_chance(pairs, counted.evidence, tried)):
                self._held_back += 1
                continue
            known.append(set(columns))
            share = counted.rows / self._rows.count
            score = measures.key_score(counted.strength, counted.evidence, len(columns), share)
            yield _rule("key", columns, (), "", counted, score)

    def _functional(self, search: Search) -> Iterable[Rule]:
        best = sorted(search.found.fds.items(), key=lambda item: (-item[1], item[0]))[: MOST_COUNTED["fd"]]
        self._held_back += len(search.found.fds) - len(best)
        targets: dict[Columns, list[int]] = {}
        for (left, target), _ in best:
            targets.setdefault(left, []).append(target)
        tried = search.found.tried["fd"]
        for number, (left, wanted) in enumerate(targets.items()):
            self._mind(STAGES[1], number / len(targets))
            for target, counted in self._count(left, sorted(wanted)).items():
                yield from self._judged(left, target, counted, tried)

    def _count(self, left: Columns, targets: Sequence[int]) -> dict[int, counting.Counted]:
        found = counting.count_fds(self._rows, left, targets)
        self._strength.update(((left, target), counted.strength) for target, counted in found.items())
        return found

    def _judged(self, left: Columns, target: int, counted: counting.Counted, tried: int) -> Iterable[Rule]:
        size = len(left)
        need = counted.strength - max((self._strength_of(part, target) for part in _parts(left)), default=0.0)
        least = measures.least_fd_strength(size, float(self._rows.differing[target]))
        strong = counted.strength >= least and counted.evidence >= measures.LEAST_EVIDENCE
        # Contradictions come in twos at most: half of them are sure to be independent of each other.
        contradictions = counted.evidence * (1.0 - counted.strength)
        genuine = measures.is_beyond_chance(contradictions / 2, counted.evidence / 2, tried)
        if not (strong and genuine and (size == 1 or need >= measures.FD_NEED[size])):
            self._held_back += 1
            return
        share = counted.rows / self._rows.count
        score = measures.fd_score(counted.strength, counted.evidence, need, size, share)
        yield _rule("fd", left, (target,), "", counted, score)

    def _strength_of(self, left: Columns, target: int) -> float:
        if (left, target) not in self._strength:
            self._count(left, [target])
        return self._strength[left, target]

    def _orders(self, search: Search) -> Iterable[Rule]:
        found = sorted(search.found.orders.items(), key=lambda item: (len(item[0][0]), -abs(item[1]), item[0]))
        self._held_back += max(0, len(found) - MOST_COUNTED["od"])
        # Pairs of columns that are ordered alike everywhere: no context adds to them.
        whole: set[tuple[int, int, bool]] = set()
        for context_size in (0, 1):
            batch = [item for item in found[: MOST_COUNTED["od"]] if len(item[0][0]) == context_size]
            batch = [item for item in batch if (*item[0][1:], item[1] > 0) not in whole]
            self._mind(STAGES[1])
            for ((context, a, b), gamma), pairs in zip(batch, self._discordant(batch), strict=True):
                self._mind(STAGES[1])
                counted = counting.count_order(self._rows, context, a, b, pairs)
                overall = search.gamma_of_all(a, b) * (1 if gamma > 0 else -1) if context else 0.0
                need = counted.strength - max(0.0, overall)
                evidence = counted.evidence * (1.0 - max(0.0, overall))
                contradictions = counted.evidence * (1.0 - counted.strength) / 2
                genuine = measures.is_beyond_chance(contradictions, evidence, search.found.tried["od"])
                strong = counted.strength >= measures.OD_STRENGTH and evidence >= measures.LEAST_EVIDENCE
                removed = 0
                if strong and genuine and pairs:
                    removed = counting.rows_to_remove(self._rows, context, a, b, gamma > 0)
                if not (strong and genuine) or removed > measures.MOST_OUT_OF_ORDER * counted.rows:
                    self._held_back += 1
                    continue
                if not context:
                    whole.add((a, b, gamma > 0))
                share = counted.rows / self._rows.count
                score = measures.od_score(counted.strength, evidence, need, len(context), share)
                rule = _rule("od", context, (a, b), _sense(gamma), counted, score)
                yield replace(rule, exceptions=removed, evidence=evidence)

    def _discordant(self, orders: Sequence[tuple[tuple[Columns, int, int], float]]) -> list[int]:
        """Pairs of rows that contradict each order rule, by the kernels of rule checking."""
        from tuplewise.engine.dc.violations.detect import check_rules

        if not orders:
            return []
        names = self._relation.column_names
        rules = [
            order_constraint(names, Rule("od", context, (a, b), _sense(gamma), 0, 0, 0.0, 0.0, 0.0))
            for (context, a, b), gamma in orders
        ]
        options = DcCheckOptions(count_only=True, nulls=self._options.nulls, device=self._options.device)
        checked = check_rules(self._relation, rules, options, Run(deadline=self._run.deadline))
        if checked.partial:
            raise _Over
        return [int(rule.violating_pairs or 0) for rule in checked.rules]

    def _row_rules(self) -> Iterable[Rule]:
        for a, b in self._comparable():
            self._mind()
            yield from self._compared(a, b)

    def _comparable(self) -> Iterable[tuple[int, int]]:
        """Pairs of columns of one domain that look ordered, or equal, in a few rows of the table."""
        rng = np.random.default_rng(self._options.seed)
        rows = rng.choice(self._rows.count, min(ROWS_OF_A_GLANCE, self._rows.count), replace=False)
        codes = self._rows.codes[:, np.sort(rows)]
        domains = np.array([column.domain for column in self._relation.columns])
        varying = self._rows.distinct > 1
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

    def _compared(self, a: int, b: int) -> Iterable[Rule]:
        """What holds between two columns of a row: equal, or one at most (or below) the other."""
        rows, columns = self._rows, self._relation.columns
        found = counting.compare(rows.codes[a], rows.codes[b])
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
            score = worth(strength, by_chance, count / rows.count)
            yield Rule("row", (left,), (right,), sense, count, exceptions, by_chance, strength, score)
            if sense == "==":
                return


def _sense(gamma: float) -> str:
    return "ascending" if gamma > 0 else "descending"


def _parts(left: Columns) -> Iterable[Columns]:
    return itertools.combinations(left, len(left) - 1) if len(left) > 1 else ()


def _rule(kind: str, left: Columns, right: Columns, sense: str, counted: counting.Counted, score: float) -> Rule:
    return Rule(kind, left, right, sense, counted.rows, counted.exceptions, counted.evidence, counted.strength, score)  # type: ignore[arg-type]
