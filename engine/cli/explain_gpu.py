"""`doctor --explain-gpu`: the work on a table that Spark leaves to the CPU, with the plugin's reasons.

A table is loaded as commands load it. The work of Spark's tasks is then done with its first rows: the operators of a
plan don't depend on the number of rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, command_line_option
from tuplewise.engine.options import DcCheckOptions, DcDiscoverOptions, IndCheckOptions, LoadOptions
from tuplewise.engine.table.schema import quote_name

if TYPE_CHECKING:
    from tuplewise.engine.dc.predicate import PredicateSpace
    from tuplewise.engine.dc.violations.found import Cell
    from tuplewise.engine.od.dependency import Dependencies
    from tuplewise.engine.spark.gpu_plans import Explained, PlanWatch
    from tuplewise.engine.table.relation import Relation
    from tuplewise.engine.table.spark_frame import EncodedFrame

FEW_ROWS = 200
MOST_COLUMNS = 8
"""Columns that discovery is planned with. More columns make longer plans of the same operators."""
QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Interpreted plans of few partitions: the same operators, without compiling for seconds."""
MOST_PAIRS = 1_000_000
Step = Callable[[str], None]


def explain(table: Any, options: LoadOptions, step: Step) -> dict[str, Any]:
    """The operators that run on a GPU when a table is loaded, encoded, checked and searched: `plans` and `notes`.

    Raises
    ------
    InputError : where the plugin's jar isn't here, or the table can't be read
    """
    from tuplewise.engine.spark.gpu_plans import summary, watching

    step("starting Spark")
    with watching({**QUICK, **options.conf}, profile=options.profile, master=options.master) as watch:
        work = PlannedWork(table, replace(options, master=None, profile=None, conf={}), watch, step)
        found: list[Explained] = []
        try:
            for plan, planned in work.pieces():
                step(f"planning {plan}")
                planned()
                found.append(summary(plan, watch.take()))
        except InputError as problem:
            if not found:
                raise
            work.notes.append(problem.spelled(command_line_option))
        finally:
            work.close()
    return {"plans": [one.to_dict() for one in found], "notes": list(dict.fromkeys(work.notes))}


def text_parts(document: Mapping[str, Any]) -> list[Any]:
    """The text of `explain`; empty without --explain-gpu."""
    from tuplewise.engine.report.text import grid

    if "plans" not in document:
        return []
    rows, unexpected = [], 0
    for plan in document["plans"]:
        rows.append([plan["plan"], str(plan["on_gpu"]), str(len(plan["on_cpu"])), ""])
        for one in plan["on_cpu"]:
            unexpected += not one["listed"]
            rows.append(["", "", "", f"{one['operator']}: {'' if one['listed'] else 'unexpected: '}{one['why']}"])
    headings = [("plan", "left"), ("on GPU", "right"), ("on CPU", "right"), ("why", "left")]
    verdict = "on a GPU: all but what is known to stay on the CPU"
    if unexpected:
        verdict = f"{unexpected} unexpected on the CPU: look whether these columns can be left out, or read otherwise"
    return ["", grid(headings, rows), *(f"note: {note}" for note in document["notes"]), verdict]


class PlannedWork:
    """The work on a table, piece by piece. Spark's tasks get its first rows only.

    Attributes
    ----------
    notes : remarks on the work
    """

    def __init__(self, table: Any, options: LoadOptions, watch: PlanWatch, step: Step = lambda step: None) -> None:
        few = FEW_ROWS if options.rows is None else min(options.rows, FEW_ROWS)
        self._table, self._options, self._few = table, options, replace(options, rows=few)
        self._spark, self._step = watch.spark, step
        self._encoded: EncodedFrame | None = None
        self._kept: list[Any] = []
        self.notes: list[str] = []

    def pieces(self) -> list[tuple[str, Callable[[], None]]]:
        """The pieces of the work, each with the name of its plan, in an order in which they can be done."""
        return [
            ("load", self.load),
            ("encode", self.encode),
            ("dc check", self.check),
            ("dc discover", self.discover_constraints),
            ("od discover", self.discover_orders),
            ("ind discover", self.discover_inclusions),
        ]

    def close(self) -> None:
        """Let Spark drop the encoded rows and the results."""
        self._kept.clear()
        if self._encoded is not None:
            self._encoded.close()

    def load(self) -> None:
        """Load the table as a command does."""
        from tuplewise.engine.placement import most_bytes_here
        from tuplewise.engine.table.in_spark import TableInSpark
        from tuplewise.engine.table.table import open_table

        most, by_spark = most_bytes_here(DcCheckOptions()), replace(self._options, reader="spark")
        table = open_table(self._table, by_spark, spark=self._spark, progress=self._step, most_bytes=most)
        if isinstance(table, TableInSpark):
            self.notes.append("the table stays in Spark: it takes more memory than a command may use here")

    def encode(self) -> None:
        """Encode the first rows as tables too large for one process are encoded, in both ways."""
        from tuplewise.engine.table.frames import kind_of
        from tuplewise.engine.table.spark_encoded import encode_for
        from tuplewise.engine.table.spark_load import load_with_spark, open_with_spark

        source = (self._table, kind_of(self._table), self._few, None, self._spark, self._step)
        relation = load_with_spark(*source, large=True)
        self.notes += [note for note in relation.notes if note.startswith("encoded in one process")]
        opened = open_with_spark(*source, large=True)
        names = opened.column_names
        if len(names) > MOST_COLUMNS:
            self.notes.append(f"checks and discoveries are planned with the first {MOST_COLUMNS} columns")
        self._encoded = encode_for("searched", opened, names[:MOST_COLUMNS], self._step)

    @property
    def encoded(self) -> EncodedFrame:
        """The codes of the first rows."""
        if self._encoded is None:
            self.encode()
        assert self._encoded is not None
        return self._encoded

    def check(self) -> None:
        """Check rules with equalities and with inequalities: count pairs, list some, write all to files."""
        from tuplewise.engine.dc.rule_text import read_rule
        from tuplewise.engine.dc.violations.distributed import check_on_spark

        rules = [read_rule(text) for text in rules_for(self.encoded.header)]
        for count_only in (True, False):
            found = check_on_spark(self.encoded, rules, DcCheckOptions(device="cpu", count_only=count_only))
            self._kept.append(found)  # results hold the table
        with tempfile.TemporaryDirectory(prefix="tuplewise-") as folder:
            shown: list[Cell] = [("t", self.encoded.header.column_names[0])]
            assert found.on_spark is not None
            found.on_spark.write_pairs(f"{folder}/pairs", shown, [shown] * len(rules), None)

    def discover_constraints(self) -> None:
        """Read rows as a discovery of denial constraints does: figures, samples, agreeing pairs, validation."""
        from tuplewise.engine.dc.distributed import SparkDcTable
        from tuplewise.engine.dc.distributed_figures import SparkFigures
        from tuplewise.engine.dc.predicate import build_space
        from tuplewise.engine.dc.rule_text import read_rule

        figures = SparkFigures(self.encoded)
        options = DcDiscoverOptions(shared_values=Decimal(0))  # columns are compared with each other, where types allow
        space = build_space(self.encoded.header, options, figures)
        figures.outcome_counts(space)
        rows = SparkDcTable(self.encoded, space, device="cpu", least_pairs=9, estimate_rows=8)
        with closing(rows):
            last = len(self.encoded.header.columns) - 1
            rows.sample()
            rows.sample_agreeing(((last, last),))
            for agreement in (((0, 0), (last, last)), ((0, 0),), *_compared(space)):
                rows.compare_agreeing(agreement)
            rules = [read_rule(text) for text in rules_for(self.encoded.header)]
            rows.violating_clues([*rules, read_rule(order_of(self.encoded.header))], 2)
            rows.all_violating_clues(rules, MOST_PAIRS)

    def discover_orders(self) -> None:
        """Read rows as discoveries of order dependencies, functional dependencies and keys do."""
        from tuplewise.engine.od.distributed import SparkContextTable
        from tuplewise.engine.od.search import clue_layout

        columns = len(self.encoded.header.columns)
        layout = clue_layout(columns, ordered=True)
        rows = SparkContextTable(
            self.encoded, layout, nulls="value", device="cpu", pairs_a_row=1, sampled_rows=9, estimate_rows=8
        )
        with closing(rows):
            rows.sample()
            rows.sample_agreeing(((columns - 1, columns - 1),))
            contexts, which, dependencies = _contexts(columns)
            rows.violating_pairs(contexts, which, dependencies, 2)

    def discover_inclusions(self) -> None:
        """Cluster the columns by their values, and check whether the first one's are among the last one's."""
        from tuplewise.engine.ind.dependency import Attribute, unary
        from tuplewise.engine.ind.distributed import cluster_on_spark
        from tuplewise.engine.ind.distributed_check import check_on_spark
        from tuplewise.engine.ind.places import open_tables

        tables = {"table": self._table}
        opened = open_tables(tables, self._few, self._spark)
        cluster_on_spark(opened)
        plan = opened["table"].selection
        first, last = (Attribute("table", plan.names[i]) for i in (plan.kept[0], plan.kept[-1]))
        check_on_spark(tables, [unary(first, last)], IndCheckOptions(), {"table": self._few}, reason="to be planned")


def rules_for(header: Relation) -> list[str]:
    """Rules that fit any table: a key of its only column, else a dependency and an order of two columns."""
    first, last = quote_name(header.column_names[0]), quote_name(header.column_names[-1])
    if len(header.columns) == 1:
        return [f"not(t.{first} == u.{first})"]
    return [
        f"not(t.{last} == u.{last} and t.{first} != u.{first})",
        f"not(t.{first} < u.{first} and t.{last} > u.{last})",
    ]


def order_of(header: Relation) -> str:
    """A rule about the order of the first two columns: few rows seldom refute it, so tasks must look."""
    names = header.column_names
    first, second = quote_name(names[0]), quote_name(names[min(1, len(names) - 1)])
    return f"not(t.{first} < u.{first} and t.{second} > u.{second})"


def _compared(space: PredicateSpace) -> list[tuple[tuple[int, int]]]:
    """One pair of different columns that are compared, if there is one."""
    crossed = np.flatnonzero(space.left != space.right)[:1].tolist()
    return [((int(space.left[g]), int(space.right[g])),) for g in crossed]


def _contexts(columns: int) -> tuple[NDArray[np.uint64], NDArray[np.int32], Dependencies]:
    """The first and the last column as contexts, and dependencies of each kind within each."""
    from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, KEY, Dependencies

    checks: list[tuple[int, int, int, int]] = []
    own = [0, columns - 1]
    for number, context in enumerate(own):
        others = [c for c in range(columns) if c != context][:2]
        checks.append((number, KEY, -1, -1))
        checks += [(number, CONSTANT, others[0], -1)] if others else []
        checks += [(number, ASCENDING, others[0], others[1])] if len(others) > 1 else []
    which, kind, left, right = (np.array(part, dtype=np.int32) for part in zip(*checks, strict=True))
    contexts = np.array([[1 << c] for c in own], dtype=np.uint64)
    return contexts, which, Dependencies(contexts[which], kind.astype(np.int8), left, right)
