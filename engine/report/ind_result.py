"""What `discover_inds` returns: inclusion dependencies, and what speaks for each being a foreign key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tuplewise.engine.errors import number_of
from tuplewise.engine.ind.dependency import names_record, write_side
from tuplewise.engine.ind.foreign_keys import ranked, with_evidence
from tuplewise.engine.ind.found import FoundInd, FoundInds, TableFound
from tuplewise.engine.report import drawing, model
from tuplewise.engine.report.ind_sql import IndWriter
from tuplewise.engine.report.result import SHOWN_IN_REPR, Chosen, Fields, Result
from tuplewise.engine.report.sections import Heading, Section

MEASURE = "share of distinct values missing"
EVIDENCE = ("coverage", "name_likeness", "key", "unique", "score")
COUNTS = ("dependent_distinct", "referenced_distinct", "missing_values")
DRAWN = 50
_SHOWN = {"score": "score", "key": "key", "name_likeness": "names", "coverage": "coverage"}


class IndTables:
    """The part of a result that is about its tables."""

    _found: Any

    @property
    def tables(self) -> tuple[TableFound, ...]:
        tables: tuple[TableFound, ...] = self._found.tables
        return tables

    @property
    def _relations(self) -> list[Any]:
        return []

    @property
    def _tables(self) -> list[dict[str, Any]]:
        return table_records(self.tables)

    @property
    def _spark(self) -> Mapping[str, str] | None:
        spark: Mapping[str, str] | None = self._found.spark
        return spark

    def _sql_writer(self, dialect: str, tables: Mapping[str, str]) -> IndWriter:
        return IndWriter(self.tables, dialect, tables, self._found.options.as_text)


def table_records(tables: Iterable[TableFound]) -> list[dict[str, Any]]:
    """The entries of "tables"."""
    return [
        {"name": t.name, "path": t.path, "rows": t.rows, "columns": model.columns_record(t.columns)} for t in tables
    ]


class IndResult(IndTables, Result):
    """The inclusion dependencies that hold between the columns of tables.

    Attributes
    ----------
    inds : list of FoundInd, by size, dependent and referenced columns: each with `ind`, `dependent_distinct`,
        `referenced_distinct`, `missing_values` and `evidence` (`coverage`, `name_likeness`, `key`, `unique`, `score`)
    trivial : how many more hold because the dependent side has no values
    tables : what was read of each table
    partial, notes, device, device_reason, timings_seconds : as of every Result

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> orders = pd.DataFrame({"no": [7, 8, 9], "customer": ["Ann", "Bob", "Ann"]})
    >>> customers = pd.DataFrame({"name": ["Ann", "Bob", "Eve"]})
    >>> found = tw.discover_inds({"orders": orders, "customers": customers})
    >>> [(str(one.ind), one.evidence.unique) for one in found.inds]
    [('orders.customer <= customers.name', True)]
    """

    COMMAND = "ind discover"
    ALL = ".inds, .to_pandas()"
    MISSING = "a limit was reached; there may be more inclusion dependencies"
    _found: FoundInds

    @cached_property
    def _weighed(self) -> tuple[FoundInd, ...]:
        """What was found, with what speaks for foreign keys."""
        return with_evidence(self._found).inds

    @property
    def inds(self) -> list[FoundInd]:
        return list(self._weighed)

    def ranked(self, limit: int | None = None) -> list[FoundInd]:
        """The likeliest foreign keys first: by score."""
        return ranked(self._weighed)[: self._chosen(self.CHOICES, {"limit": limit}).limit]

    @property
    def trivial(self) -> int:
        return self._found.trivial

    def __len__(self) -> int:
        return len(self._found.inds)

    def __iter__(self) -> Iterator[FoundInd]:
        return iter(self._weighed)

    def __repr__(self) -> str:
        said = f"{self._summary()}{', PARTIAL' if self.partial else ''}, {self.device}"
        return self._described(said, [str(one.ind) for one in self.ranked(SHOWN_IN_REPR)], len(self))

    def _summary(self) -> str:
        """How many there are, how far they hold, and how many hold for want of values."""
        error = self._found.options.error
        how_far = "exact" if error == 0 else f"at most {error:f} of the distinct values missing"
        compared = ", compared as text" if self._found.options.as_text else ""
        count = number_of(len(self), "inclusion dependency", "inclusion dependencies")
        trivial = f"; {self.trivial:,} more of columns without values" if self.trivial else ""
        return f"{count} ({how_far}{compared}){trivial}"

    def _method(self) -> list[tuple[str, str]]:
        return [("work", f"{self._found.work} ({self._found.work_reason})")]

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "work": self._found.work,
            "work_reason": self._found.work_reason,
            "measure": MEASURE,
            "search": dict(self._found.search),
            "trivial": self.trivial,
            "count": len(self),
        }

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {"inds": map(_record, self._listed(chosen))}

    def _cut(self, chosen: Chosen) -> list[str]:
        if chosen.limit is None or len(self) <= chosen.limit:
            return []
        return [f"the best {chosen.limit:,} of {len(self):,} inclusion dependencies are listed (limit)"]

    def _table(self, chosen: Chosen) -> Fields:
        return Fields(("dependent", "referenced", *COUNTS, *EVIDENCE), map(_row, self._listed(chosen)))

    def _queries(self, chosen: Chosen, dialect: str, table: str | None, tables: Mapping[str, str]) -> Iterator[str]:
        return self._sql_writer(dialect, tables).script(one.ind for one in self._listed(chosen))

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        best = self.ranked(chosen.limit or most)
        missing: list[Heading] = [("missing", "right")] if self._found.options.error > 0 else []
        figures: list[Heading] = [(heading, "right") for heading in _SHOWN.values()]
        rows = []
        for number, one in enumerate(best, 1):
            shown = [f"{getattr(one.evidence, name):.2f}" for name in _SHOWN]
            rows.append([str(number), *shown, *([f"{one.missing_values:,}"] if missing else []), str(one.ind)])
        keys = [one for one in best if one.evidence.score >= drawing.SURE][:DRAWN]
        return [
            Section(
                "Inclusion dependencies", "table", [("", "right"), *figures, *missing, ("dependency", "code")], rows,
                "Likeliest foreign keys first." if best else "There are none.",
                heading="likeliest foreign keys first", count=len(self), cut=len(best) < len(self),
            ),
            Section("Likely foreign keys", "drawing", rows=list(map(_drawn, keys))),
        ]  # fmt: skip

    def _listed(self, chosen: Chosen) -> Sequence[FoundInd]:
        """All, in result order; with a limit the best."""
        return self._weighed if chosen.limit is None else self.ranked(chosen.limit)


def _record(found: FoundInd) -> dict[str, Any]:
    """One entry of "inds"."""
    evidence = {name: getattr(found.evidence, name) for name in EVIDENCE}
    return {
        "dependent": names_record(found.ind.dependent),
        "referenced": names_record(found.ind.referenced),
        **{name: getattr(found, name) for name in COUNTS},
        "foreign_key": {name: v if isinstance(v, bool) else round(v, 6) for name, v in evidence.items()},
    }


def _row(found: FoundInd) -> dict[str, Any]:
    """The same, flat, each side as text."""
    record = _record(found)
    sides = {"dependent": write_side(found.ind.dependent), "referenced": write_side(found.ind.referenced)}
    return {**record, **sides, **record["foreign_key"]}


def _drawn(found: FoundInd) -> drawing.Relation:
    """A dependency in a drawing of tables."""
    left, right = found.ind.dependent, found.ind.referenced
    columns, referenced = ([a.column for a in side] for side in (left, right))
    return left[0].table, columns, right[0].table, referenced, found.evidence.score
