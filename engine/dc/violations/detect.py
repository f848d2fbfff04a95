"""Checks of rules on a table: whether they hold, how many pairs and rows violate them, and which.

Source of the whole: FACET (Pena, de Almeida, Naumann, "Fast Detection of Denial Constraint Violations", PVLDB 15(4),
2022). Each module names its departures. The largest: pairs are counted without being materialised.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.violations import trie
from tuplewise.engine.dc.violations.cardinalities import Cardinalities, cardinalities
from tuplewise.engine.dc.violations.count import both_counts, count_pairs
from tuplewise.engine.dc.violations.found import DcCheck, RuleCheck, remarks
from tuplewise.engine.dc.violations.listing import first_pairs, violating_rows
from tuplewise.engine.dc.violations.planner import CheckPlan, plan
from tuplewise.engine.dc.violations.program import Program, bind, without_unfit
from tuplewise.engine.grouping import Work, agreeing, start
from tuplewise.engine.options import DcCheckOptions
from tuplewise.engine.placement import refuse_spark
from tuplewise.engine.run import Run
from tuplewise.engine.table.in_spark import Table
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.clusters import ClusterPairs
from tuplewise.gpu_kernels.control import usable_cores
from tuplewise.gpu_kernels.device import pick_device


def check_rules(
    table: Table,
    rules: Sequence[DenialConstraint],
    options: DcCheckOptions | None = None,
    run: Run | None = None,
) -> DcCheck:
    """Find the violations of some rules in a table.

    Parameters
    ----------
    table : Relation or TableInSpark
    rules : about two tuples or one
    run : reports progress of "checking"; None: a run that begins now, with the options' limits

    Raises
    ------
    RuleError
        If a rule can't be bound to the table; raised before any work.
    DeviceError
        If a requested device is not available.

    Notes
    -----
    Cost for n rows: near-linear for a rule with equalities, at most two inequalities and up to six non-equalities. For
    other rules see `count` and `gpu_kernels.refine.join`. Memory: 30 to 60 bytes a row, for any number of pairs.
    """
    options = options or DcCheckOptions()
    run = run or Run(options)
    if not isinstance(table, Relation):
        from tuplewise.engine.dc.violations.distributed import check_in_spark

        return check_in_spark(table, rules, options, run)
    relation = table
    refuse_spark(options, relation.name)
    device = pick_device(options.device)
    began = time.monotonic()
    rules = [rule.normalised(relation.column_names) for rule in rules]
    programs = [bind(rule, relation, options.nulls) for rule in rules]
    sizes = cardinalities(relation, options.seed)
    plans = [plan(program, sizes, relation.column_names) for program in programs]
    roots, notes = _roots(programs, plans, sizes, options)
    notes = [*remarks(rules, relation), *notes]
    planned = time.monotonic()
    work = Work(relation.codes, device, deadline=run.deadline)
    runner = _Runner(rules, programs, plans, options, work, run)
    runner.run(roots)
    checks = runner.results()
    if runner.reached is not None:
        notes.append(runner.reached)
    return DcCheck(
        relation=relation,
        options=options,
        rules=tuple(checks),
        device=device.described,
        device_reason=device.reason,
        timings_seconds={"plan": planned - began, "check": time.monotonic() - planned},
        partial=runner.reached is not None,
        notes=tuple(notes),
    )


def _roots(
    programs: Sequence[Program], plans: Sequence[CheckPlan], sizes: Cardinalities, options: DcCheckOptions
) -> tuple[list[trie.TrieNode], list[str]]:
    """Tries of shared equalities, or one for each rule; and a note on the work that sharing saves."""
    pairwise = [n for n, program in enumerate(programs) if not program.one_row and not program.never]
    alone = [root for n in pairwise for root in trie.build(programs, plans, "cost", sizes, [n])]
    if options.together == "none" or len(pairwise) < 2:
        return alone, []
    if options.together != "auto":
        return trie.build(programs, plans, options.together, sizes, pairwise), []
    shared = trie.build(programs, plans, "saving", sizes, pairwise)
    share = trie.work_of(shared, sizes) / max(1.0, trie.work_of(alone, sizes))
    if share >= 1:
        return alone, []
    return shared, [f"rules share equalities: {share:.0%} of the rows are sorted that they would sort one by one"]


@dataclass(eq=False)
class _Runner:
    """Check of rules along tries; results are by rule number. `reached`: the limit that ended it."""

    _rules: Sequence[DenialConstraint]
    _programs: list[Program]
    _plans: list[CheckPlan]
    _options: DcCheckOptions
    _work: Work
    _run: Run
    _found: dict[int, RuleCheck] = field(default_factory=dict)
    reached: str | None = None

    def run(self, roots: list[trie.TrieNode]) -> None:
        """Check all tries; several tries run in parallel on the CPU."""
        for n, program in enumerate(self._programs):
            if program.one_row:
                self._keep(n, self._check_one_row(n))
            elif program.never:
                self._keep(n, self._nothing(n))
        threads = min(len(roots), usable_cores()) if self._work.device.kind == "cpu" else 1
        if threads < 2:
            for root in roots:
                self._walk_root(root, self._work)
            return
        work = replace(self._work, threads=max(1, usable_cores() // threads))
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(self._walk_root, root, work) for root in roots]:
                done.result()

    def results(self) -> list[RuleCheck]:
        return [self._found.get(n) or self._unknown(n) for n in range(len(self._rules))]

    def _walk_root(self, root: trie.TrieNode, work: Work) -> None:
        first = next(iter(root.rules or _rules_below(root)))
        self._walk(root, without_unfit(work, self._programs[first], start(work), "tests"), work)

    def _walk(self, node: trie.TrieNode, pairs: ClusterPairs, work: Work) -> None:
        if self._over():
            return
        pairs = agreeing(work, pairs, node.equalities, self._options.nulls == "value")
        for n in node.rules:
            if self._over():
                return
            try:
                self._keep(n, self._check_pairs(n, pairs, work))
            except TimeoutError:
                self._over()
                return
        for child in node.children:
            self._walk(child, pairs, work)

    def _over(self) -> bool:
        """Whether a limit was reached. Called before each refinement and each rule."""
        limit = self._run.memory_limit
        if self._run.over():
            self.reached = self.reached or "the time limit was reached before every rule was checked"
        elif self._run.full():
            self.reached = (
                self.reached or f"the memory limit of {limit:,} bytes was reached before every rule was checked"
            )
        return self.reached is not None

    def _keep(self, n: int, check: RuleCheck) -> None:
        self._found[n] = check
        self._run.tell("checking", len(self._found) / len(self._rules))

    def _check_pairs(self, n: int, pairs: ClusterPairs, work: Work) -> RuleCheck:
        program, made, options = self._programs[n], self._plans[n], self._options
        began = time.monotonic()
        work = replace(work, taken=[])
        pairs = without_unfit(work, program, pairs, "nulls")
        if options.count_only:
            total = count_pairs(work, made, pairs, program.keep_nulls)
            return self._made(n, total, None, None, None, began, work.taken)
        total, as_left, as_right = both_counts(work, made, pairs, program.keep_nulls, program.symmetric)
        listed = None
        if total:
            try:
                listed = first_pairs(work, made, pairs, as_left, program.symmetric, options.pairs)
            except TimeoutError:  # results so far are kept
                self.reached = "the time limit was reached before all pairs were listed"
        counts = as_left if program.symmetric else as_left + as_right
        return self._made(n, total, int(np.count_nonzero(counts)), listed, counts, began, work.taken)

    def _check_one_row(self, n: int) -> RuleCheck:
        began = time.monotonic()
        rows = violating_rows(self._work, self._programs[n])
        counts = None
        if not self._options.count_only:
            counts = np.zeros(self._work.rows, dtype=np.int64)
            counts[rows] = 1
        first = rows[: self._options.pairs].astype(np.int64)
        listed = None if self._options.count_only else np.stack([first, np.full(len(first), -1)], axis=1)
        return self._made(n, len(rows), len(rows), listed, counts, began)

    def _nothing(self, n: int) -> RuleCheck:
        counts = None if self._options.count_only else np.zeros(self._work.rows, dtype=np.int64)
        return self._made(n, 0, 0, None, counts, time.monotonic())

    def _unknown(self, n: int) -> RuleCheck:
        return replace(self._nothing(n), violating_pairs=None, violating_rows=None, row_counts=None)

    def _made(
        self,
        n: int,
        total: int,
        violating_rows: int | None,
        listed: NDArray[np.int64] | None,
        counts: NDArray[np.int64] | None,
        began: float,
        taken: Sequence[str] = (),
    ) -> RuleCheck:
        program = self._programs[n]
        return RuleCheck(
            rule=self._rules[n],
            violating_pairs=total,
            violating_rows=violating_rows,
            rows_unknown=program.rows_unknown(self._work.codes),
            symmetric=program.symmetric,
            one_row=program.one_row,
            pairs=np.empty((0, 2), dtype=np.int64) if listed is None else listed,
            row_counts=counts,
            plan=_steps_taken(self._plans[n], taken),
            seconds=time.monotonic() - began,
        )


def _steps_taken(made: CheckPlan, taken: Sequence[str]) -> list[dict[str, Any]]:
    """The planned steps, with the join's actual algorithm if it differs from the plan."""
    steps = [dict(step) for step in made.steps]
    for step in steps:
        if taken and step["algorithm"] == made.algorithm != taken[0]:
            step["algorithm"], step["why"] = taken[0], "a sample of rows showed that it costs less"
    return steps


def _rules_below(node: trie.TrieNode) -> Any:
    """Numbers of the rules below a node."""
    for child in node.children:
        yield from child.rules or _rules_below(child)
