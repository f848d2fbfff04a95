"""What `check_inds` returns: whether inclusion dependencies hold, and the values and rows that break them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from tuplewise.engine.errors import Face, Wording, number_of, spelled
from tuplewise.engine.ind.check import Names, check_dependencies
from tuplewise.engine.ind.dependency import InclusionDependency
from tuplewise.engine.ind.found import CheckedInds, IndCheck
from tuplewise.engine.options import IndCheckOptions, LoadOptions
from tuplewise.engine.report import text
from tuplewise.engine.report.cells import json_values
from tuplewise.engine.report.checked_result import VERDICTS, CheckedResult
from tuplewise.engine.report.ind_result import MEASURE, IndTables
from tuplewise.engine.report.ind_texts import read_all_inds
from tuplewise.engine.report.result import Choice, Chosen, Fields
from tuplewise.engine.report.sections import Entry, Fold
from tuplewise.engine.run import Run

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ("missing_values", "rows_missing", "rows_null", "dependent_distinct", "referenced_distinct")


class IndCheckResult(IndTables, CheckedResult):
    """Whether inclusion dependencies hold.

    Attributes
    ----------
    inds : list of IndCheck, each with `ind`, `holds`, `missing_values`, `rows_missing`, `rows_null`,
        `dependent_distinct`, `referenced_distinct`, `reason` and `examples` (`values`, `counts`, `rows`)
    tables : what was read of each table
    partial, notes, timings_seconds : as of every Result

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> child, parent = pd.DataFrame({"a": ["x", None, "z"]}), pd.DataFrame({"b": ["x", None]})
    >>> check = tw.check_inds({"child": child, "parent": parent}, "child.a <= parent.b").inds[0]
    >>> check.holds, check.missing_values, check.rows_missing, check.rows_null, check.examples.rows
    (False, 1, 1, 1, ((2,),))
    """

    COMMAND = "ind check"
    FORMS = ("json", "csv", "sql")
    THINGS = ("inclusion dependency", "inclusion dependencies")
    ASK = ".inds for each dependency"
    MORE = (
        "More missing values: examples=N; all of them by a query: .to_sql().",
        "More missing values: --examples N; all of them by a query: --format sql.",
    )
    _found: CheckedInds

    @cached_property
    def inds(self) -> list[IndCheck]:
        return list(self._found.checks)

    def __len__(self) -> int:
        return len(self.inds)

    def __repr__(self) -> str:
        lines = [f"{VERDICTS[check.holds]} {check.ind}" for check in self.inds]
        return self._described(self._summary(), lines, len(lines))

    def _noted(self) -> list[str]:
        reasons = [Wording("{}: {}", check.ind, check.reason) for check in self.inds if check.reason is not None]
        return [*super()._noted(), *reasons]

    def to_pandas(self, **listed: Unpack[Choice]) -> pd.DataFrame:
        """One row a dependency: ind, holds, missing_values, rows_missing, rows_null, dependent_distinct,
        referenced_distinct, reason, seconds."""
        return super().to_pandas(**listed).astype(dict.fromkeys(COUNTS, "Int64"))

    def _summary(self) -> str:
        return super()._summary() + (" (compared as text)" if self._found.options.as_text else "")

    @property
    def _facts(self) -> dict[str, Any]:
        return {"work": self._found.work, "work_reason": self._found.work_reason, "measure": MEASURE}

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {"inds": self._records()}

    def _table(self, chosen: Chosen) -> Fields:
        return Fields(("ind", "holds", *COUNTS, "reason", "seconds"), self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        return (_record(check, self._face) for check in self.inds)

    def _queries(self, chosen: Chosen, dialect: str, table: str | None, tables: Mapping[str, str]) -> Iterator[str]:
        return self._sql_writer(dialect, tables).script(check.ind for check in self.inds)

    def _entry(self, number: int, most: int, plan: bool) -> Entry:
        check = self.inds[number]
        examples = _examples(check)
        cut = check.missing_values is not None and len(examples) < check.missing_values
        listed = "all missing values" if len(examples) > 1 else "the only missing value"
        if cut:
            listed = f"{len(examples):,} of {check.missing_values:,} missing values, those of most rows"
        rows = [[*map(text.value, values), f"{count:,}", _places(count, first)] for values, count, first in examples]
        headings = [*(a.column for a in check.ind.dependent), "rows", "at"]
        fold = Fold(listed, rows, [(heading, "left") for heading in headings], cut=cut)
        return Entry(
            VERDICTS[check.holds], str(check.ind), _figures(check), folds=[fold] if rows else (),
            wrong=check.holds is False,
        )  # fmt: skip


def check_tables(
    tables: Mapping[str, Any],
    given: Any,
    options: IndCheckOptions,
    load_options: LoadOptions | None = None,
    run: Run | None = None,
) -> tuple[CheckedInds, list[str]]:
    """What `check_dependencies` finds of dependencies as a caller gives them, and notes on these."""
    notes: list[str] = []

    def read(names: Names) -> list[InclusionDependency]:
        inds, said = read_all_inds(given, names)
        notes.extend(said)
        return inds

    found = check_dependencies(tables, read, options, load_options, run)
    return found, notes


def _examples(check: IndCheck) -> list[tuple[tuple[Any, ...], int, tuple[int, ...]]]:
    """Missing values as JSON has them, the rows of each, and the first of these."""
    found = check.examples
    if found is None:
        return []
    columns = [json_values(array) for array in found.values]
    return list(zip(zip(*columns, strict=True), found.counts.tolist(), found.rows, strict=True))


def _record(check: IndCheck, face: Face) -> dict[str, Any]:
    """One entry of "inds"."""
    one = check.ind.size == 1
    return {
        "ind": str(check.ind),
        "holds": check.holds,
        **{name: getattr(check, name) for name in COUNTS},
        "reason": None if check.reason is None else spelled(check.reason, face),
        "examples": [
            {"value": values[0] if one else list(values), "count": count, "rows": list(rows)}
            for values, count, rows in _examples(check)
        ],
        "seconds": round(check.seconds, 6),
    }


def _places(count: int, first: Sequence[int]) -> str:
    """The first of some rows, with dots where there are more."""
    return ", ".join([*map(str, first), *(["..."] if count > len(first) else [])])


def _figures(check: IndCheck) -> str:
    """How many values and rows break it."""
    if check.missing_values is None:
        return "how many values are missing is not known: a limit came before"
    nulls = f"; {number_of(check.rows_null or 0, 'row')} left out for a null" if check.rows_null else ""
    if check.missing_values == 0:
        there = "no value is there" if check.dependent_distinct == 0 else "no value is missing"
        return f"{there}{nulls}"
    missing = f"{check.missing_values:,} of {number_of(check.dependent_distinct or 0, 'value')} missing"
    return f"{missing}, in {number_of(check.rows_missing or 0, 'row')}{nulls}"
