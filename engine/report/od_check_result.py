"""What `check_ods` returns: whether list-based order dependencies hold, and two rows that break each that does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplewise.engine.errors import Face, InputError, all_spelled, message, python_option
from tuplewise.engine.od.check import CheckedOds
from tuplewise.engine.od.lexicographic import OdCheck
from tuplewise.engine.report import check_text, csv, html, json, model, text
from tuplewise.engine.report.cells import Cells, json_values
from tuplewise.engine.report.checked_result import CheckedResult

if TYPE_CHECKING:
    import pandas as pd

COMMAND = "od check"
FIELDS = ("od", "holds", "kind", "t", "u", "seconds")
_SAID = {
    "split": "t and u are equal on the left and differ on the right",
    "swap": "t is before u on the left and behind it on the right",
}


class OdCheckResult(CheckedResult):
    """Whether list-based order dependencies hold.

    Attributes
    ----------
    ods : list of OdCheck, each with `od`, `holds`, `violation` (None, or `kind`, "split" or "swap", and rows `t`, `u`)
        and `seconds`
    partial : whether some are undecided: a limit came first, or a saved result doesn't tell
    notes : what a reader should know
    device, device_reason : what the kernels ran on, and why; None where no table was looked at
    timings_seconds : what took how long

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> days = pd.DataFrame({"month": [1, 1, 2], "week": [1, 5, 5]})
    >>> check = tw.check_ods(days, ["month, week -> week, month", "week -> month"])
    >>> [(str(c.od), c.holds) for c in check.ods]
    [('month, week -> week, month', True), ('week -> month', False)]
    >>> check.ods[1].violation.kind, check.ods[1].violation.t, check.ods[1].violation.u
    ('split', 1, 2)
    """

    _NO_TRUTH = "an OdCheckResult is neither true nor false: ask .holds, or .ods for each dependency"

    def __init__(
        self,
        found: CheckedOds,
        *,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        total_seconds: float = 0.0,
        face: Face = python_option,
    ) -> None:
        super().__init__(found, options=options, notes=notes, total_seconds=total_seconds, face=face)
        self._found: CheckedOds = found
        self.ods: list[OdCheck] = list(found.checks)

    def __len__(self) -> int:
        return len(self.ods)

    def __repr__(self) -> str:
        where = "" if self._found.relation is None else f" in {self._found.relation.name!r}"
        lines = [f"  {check_text.VERDICTS[check.holds]} {text.visible(str(check.od))}" for check in self.ods]
        return "\n".join([f"<OdCheckResult: {self._summary()}{where}>", *lines])

    def _repr_html_(self) -> str:
        blocks = [{**block, "listed": ""} for block in self._blocks()]
        return html.blocks_html(self._heading, self._summary(), blocks)

    @property
    def _verdicts(self) -> list[bool | None]:
        return [one.holds for one in self.ods]

    @property
    def notes(self) -> list[str]:
        known = [] if self._found.relation is None else self._found.relation.notes
        return all_spelled((*known, *self._found.notes, *self._more_notes), self._face)

    @property
    def device(self) -> str | None:
        return self._found.device

    @property
    def device_reason(self) -> str | None:
        return self._found.device_reason

    @property
    def timings_seconds(self) -> dict[str, float]:
        return dict(self._heading["timings_seconds"])

    def to_dict(self) -> dict[str, Any]:
        """The whole result as `tuplewise od check --format json` writes it."""
        return {**self._heading, "result": {"ods": self._records()}}

    def to_json(self) -> str:
        """The whole result as JSON text."""
        return "".join(self.pieces("json"))

    def to_csv(self) -> str:
        """One line a dependency, with a header: od, holds, kind, t, u, seconds."""
        return "".join(self.pieces("csv"))

    def to_pandas(self) -> pd.DataFrame:
        """One row a dependency: od, holds, kind ("split" or "swap"), t, u, seconds."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(FIELDS)).astype({"t": "Int64", "u": "Int64"})

    def pieces(self, form: str) -> Iterator[str]:
        """The result as "json" or "csv" in pieces of text."""
        if form == "json":
            return json.pieces(self._heading, self._records())
        if form == "csv":
            return csv.pieces(self._rows(), FIELDS)
        raise InputError(message("format", form, "'json' or 'csv'"))

    def to_text(
        self, *, verbose: bool = False, width: int | None = None, color: bool = False, command_line: bool = False
    ) -> str:
        """For people: each dependency, and two rows that break it."""
        tables = self._heading["tables"]
        parts = text.table_lines(tables[0], verbose) if tables else []
        parts += [self._summary(), text.how_it_ran(self._heading, verbose)]
        parts += [f"note: {note}" for note in self.notes]
        for block in self._blocks():
            parts += ["", f"{check_text.VERDICTS[block['holds']]}  {block['rule']}"]
            if block["pairs"]:
                parts += [f"  {block['figures']}", "", check_text.indented(check_text.pair_grid(block, 1))]
        return text.render(parts, width=width, color=color)

    def _summary(self) -> str:
        verdicts = [check.holds for check in self.ods]
        return check_text.counted("order dependency", "order dependencies", verdicts)

    def _blocks(self) -> list[dict[str, Any]]:
        """What there is to show of each dependency, as `check_text.pair_grid` takes it."""
        return [_block(record) for record in self._records()]

    def _records(self) -> list[dict[str, Any]]:
        """The entries of "ods"."""
        return [
            {
                "od": str(check.od),
                "holds": check.holds,
                "violation": self._violation(check),
                "seconds": round(check.seconds, 6),
            }
            for check in self.ods
        ]

    def _violation(self, check: OdCheck) -> dict[str, Any] | None:
        """The two rows, and their cells in the columns of the dependency."""
        found = check.violation
        if found is None or self._cells is None:
            return None
        names = dict.fromkeys(item.name for item in (*check.od.left, *check.od.right))
        values = [json_values(self._cells.values(name, np.array(found.rows))) for name in names]
        return {
            "kind": found.kind,
            "t": found.t,
            "u": found.u,
            "cells": [[role, name] for name in names for role in ("t", "u")],
            "values": [value for both in values for value in both],
        }

    def _rows(self) -> Iterator[dict[str, Any]]:
        for check in self.ods:
            found = check.violation
            kind, t, u = (None, None, None) if found is None else (found.kind, found.t, found.u)
            yield dict(zip(FIELDS, (str(check.od), check.holds, kind, t, u, round(check.seconds, 6)), strict=True))

    @cached_property
    def _cells(self) -> Cells | None:
        return None if self._found.relation is None else Cells(self._found.relation)

    @cached_property
    def _heading(self) -> dict[str, Any]:
        """The result as JSON has it, without its dependencies."""
        found = self._found
        how: dict[str, Any] = {"options": self._options, "notes": self.notes, "total_seconds": self._total_seconds}
        document = model.found_heading(COMMAND, found, **how)
        document["result"] = {"ods": []}
        return document


def _block(record: Mapping[str, Any]) -> dict[str, Any]:
    """A dependency as a rule with at most one violating pair."""
    violation = record["violation"]
    said = "" if violation is None else f"{violation['kind']}: {_SAID[violation['kind']]}"
    pairs = [] if violation is None else [violation]
    return {"rule": record["od"], "holds": record["holds"], "figures": said, "pairs": pairs, "one_row": False}
