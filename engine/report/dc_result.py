"""What `discover_dcs` returns: the constraints that were found, and every form they can be handed on in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.ranking import operator_groups
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import RankBy
from tuplewise.engine.report import csv, html, json, list_page, model, text
from tuplewise.engine.report.discovery_result import SHOWN_IN_REPR, DiscoveryResult

if TYPE_CHECKING:
    import pandas as pd

    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.dc.discovery import DcDiscovery


class DcResult(DiscoveryResult):
    """Denial constraints that hold in a table.

    Attributes
    ----------
    constraints : sequence of DenialConstraint, in result order (by size, column position, operator)
    relation : the table
    partial : whether a limit ended the search early
    notes : what a reader should know about the table or the search
    device, device_reason : what the kernels ran on, and why
    timings_seconds : what took how long

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> found = tw.discover_dcs(pd.DataFrame({"zip": ["01", "01", "02"], "city": ["A", "A", "B"], "id": [1, 2, 3]}))
    >>> "not(t.id == u.id)" in [str(c) for c in found.constraints]
    True
    """

    @property
    def constraints(self) -> Sequence[DenialConstraint]:
        found: DcDiscovery = self._found
        return found.constraints

    def __len__(self) -> int:
        return len(self._found.arrays)

    def __iter__(self) -> Iterator[DenialConstraint]:
        return iter(self._found.constraints)

    def __repr__(self) -> str:
        best = [c.rule for c in self.ranked(limit=SHOWN_IN_REPR)]
        more = ".constraints, .ranked(), .to_pandas()"
        return self._described("denial constraint", "denial constraints", best, more)

    def _repr_html_(self) -> str:
        best, groups = self._best(text.SHOWN, self._by_default)
        return html.constraints_html(self._heading, best, self._by_default, groups)

    def ranked(self, by: RankBy = model.DEFAULT_RANKING, limit: int | None = None) -> list[DenialConstraint]:
        """Constraints, best first by "genuineness", "succinctness", "coverage" or "g1"; ties in result order.

        Genuineness is how much more there is to a rule than chance, by the measures of `profile`: see the README.

        Examples
        --------
        >>> import pandas as pd, tuplewise as tw
        >>> tw.discover_dcs(pd.DataFrame({"a": [1, 2, 3]})).ranked(limit=1)[0].kind
        'key'
        """
        return list(model.constraints_of(self._found, self._index(by, limit)))

    def to_dict(self, *, rank_by: RankBy | None = None, limit: int | None = None) -> dict[str, Any]:
        """The whole result as `tuplewise dc discover --format json` writes it."""
        document = {**self._heading, "result": dict(self._heading["result"])}
        document["result"]["constraints"] = list(self._records(self._index(rank_by, limit)))
        return document

    def to_json(self, *, rank_by: RankBy | None = None, limit: int | None = None) -> str:
        """The whole result as JSON text."""
        return "".join(self.pieces("json", rank_by=rank_by, limit=limit))

    def to_csv(self, *, rank_by: RankBy | None = None, limit: int | None = None) -> str:
        """One line a constraint, with a header; where g1 was estimated, with estimated, g1_low and g1_high."""
        return "".join(self.pieces("csv", rank_by=rank_by, limit=limit))

    def to_pandas(self, *, rank_by: RankBy | None = None, limit: int | None = None) -> pd.DataFrame:
        """One row a constraint: id, rule, kind, size, violating_pairs, g1, succinctness, coverage.

        Where g1 was estimated (sample_pairs), violating_pairs is missing, and estimated, g1_low and g1_high follow.
        """
        import pandas as pd

        index = self._index(rank_by, limit)
        constraints = list(model.constraints_of(self._found, index))
        ranking, arrays, estimate = self._found.ranking, self._found.arrays, self._found.estimate
        counts: Any = arrays.violations[index]
        if estimate is not None:
            counts = pd.array(model.violating_pairs(self._found, index), dtype="Int64")
        columns = {
            "id": [c.id for c in constraints],
            "rule": [c.rule for c in constraints],
            "kind": [c.kind for c in constraints],
            "size": arrays.sizes[index],
            "violating_pairs": counts,
            "g1": ranking.g1[index],
            "succinctness": ranking.succinctness[index],
            "coverage": ranking.coverage[index],
        }
        if estimate is not None:
            columns |= {
                "estimated": estimate.estimated[index],
                "g1_low": estimate.low[index],
                "g1_high": estimate.high[index],
            }
        return pd.DataFrame(columns)

    def to_html(self, *, rank_by: RankBy | None = None, limit: int | None = None) -> str:
        """One page for a browser: the best constraints (500 unless limited) in a table to search and to sort."""
        ranked_by = rank_by or self._by_default
        best, groups = self._best(limit or list_page.MOST, ranked_by)
        return list_page.constraints_page(self._heading, best, ranked_by, groups)

    def to_sql(
        self,
        dialect: str = "spark",
        *,
        table: str | None = None,
        rank_by: RankBy | None = None,
        limit: int | None = None,
    ) -> str:
        """For each constraint a query that lists its violations.

        Parameters
        ----------
        dialect : "spark", "duckdb" or "ansi"
        table : name of the table in the database, as one writes it there (`db.orders`, `"my db".orders`);
            default: the name that the table was loaded under.

        Examples
        --------
        >>> import pandas as pd, tuplewise as tw
        >>> query = tw.discover_dcs(pd.DataFrame({"a": [1, 2, 3]})).to_sql("duckdb", table="main.things")
        >>> 'FROM "main"."things"' in query
        True
        """
        return "".join(self.pieces("sql", dialect=dialect, table=table, rank_by=rank_by, limit=limit))

    def pieces(
        self,
        form: str,
        *,
        rank_by: RankBy | None = None,
        limit: int | None = None,
        dialect: str = "spark",
        table: str | None = None,
    ) -> Iterator[str]:
        """The result as "json", "csv", "sql" or "html" in pieces of text, for results too long to hold as one."""
        index = self._index(rank_by, limit)
        if form == "json":
            document = self._heading
            if len(index) < len(self):
                cut = f"{len(index):,} of {len(self):,} constraints are listed (limit)"
                document = {**document, "notes": [*document["notes"], cut]}
            return json.pieces(document, self._records(index))
        if form == "csv":
            fields = csv.FIELDS if self._found.estimate is None else csv.ESTIMATED_FIELDS
            return csv.pieces(self._records(index), fields)
        if form == "sql":
            writer = self._sql_writer(dialect, table)
            rules = model.constraints_of(self._found, index)
            return writer.script((f"{rule.id} {rule.rule}", rule) for rule in rules)
        if form == "html":
            return iter([self.to_html(rank_by=rank_by, limit=limit)])
        raise InputError(message("format", form, "'json', 'csv', 'sql' or 'html'"))

    def to_text(
        self,
        *,
        rank_by: RankBy | None = None,
        limit: int | None = None,
        verbose: bool = False,
        width: int | None = None,
        color: bool = False,
        command_line: bool = False,
    ) -> str:
        """A summary and the best constraints (20 unless limited) for people, by genuineness unless ranked otherwise.

        By genuineness, of constraints that differ in their operators only the best one is shown, and counts as one.

        Where there are more, its last line says how to get them: here, or with `command_line` there.
        """
        ranked_by = rank_by or self._by_default
        best, groups = self._best(limit or text.SHOWN, ranked_by)
        parts = text.dc_parts(self._heading, best, ranked_by=ranked_by, groups=groups, verbose=verbose)
        if len(best) < len(self):
            parts += ["", text.MORE_THERE if command_line else text.MORE_HERE]
        return text.render(parts, width=width, color=color)

    def _index(self, rank_by: RankBy | None, limit: int | None) -> NDArray[np.int64]:
        return model.chosen(self._found, rank_by=rank_by, limit=limit)

    def _records(self, index: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
        return model.constraint_records(self._found, index)

    @property
    def _by_default(self) -> RankBy:
        """What people are shown constraints by."""
        return "genuineness"

    def _best(self, limit: int, rank_by: RankBy) -> tuple[list[dict[str, Any]], int]:
        """What people are shown, and of how many; by genuineness the best of each group of operator variants."""
        if rank_by != "genuineness":
            return list(self._records(self._index(rank_by, limit))), len(self)
        order = self._index(rank_by, None)
        group = operator_groups(self._found.arrays, self._found.space)[order]
        _, first, counts = np.unique(group, return_index=True, return_counts=True)
        best = np.argsort(first)[:limit]
        records = self._records(order[first[best]])
        return [{**r, "variants": n - 1} for r, n in zip(records, counts[best].tolist(), strict=True)], len(first)

    @cached_property
    def _heading(self) -> dict[str, Any]:
        return model.dc_heading(self._found, options=self._options, notes=self.notes, total_seconds=self._total_seconds)
