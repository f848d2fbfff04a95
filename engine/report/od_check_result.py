"""What `check_ods` returns: whether list-based order dependencies hold, and two rows that break each that does not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tuplewise.engine.od.check import CheckedOds
from tuplewise.engine.od.lexicographic import OdCheck
from tuplewise.engine.report import text
from tuplewise.engine.report.cells import Cells, json_values
from tuplewise.engine.report.checked_result import VERDICTS, CheckedResult
from tuplewise.engine.report.result import Choice, Chosen, Fields
from tuplewise.engine.report.sections import Entry, Fold

if TYPE_CHECKING:
    import pandas as pd

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
    partial, notes, device, device_reason, timings_seconds : as of every Result

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

    COMMAND = "od check"
    FORMS = ("json", "csv")
    THINGS = ("order dependency", "order dependencies")
    ASK = ".ods for each dependency"
    _found: CheckedOds

    @cached_property
    def ods(self) -> list[OdCheck]:
        return list(self._found.checks)

    def __len__(self) -> int:
        return len(self.ods)

    def __repr__(self) -> str:
        where = "" if self._found.relation is None else f" in {self._found.relation.name!r}"
        lines = [f"{VERDICTS[check.holds]} {check.od}" for check in self.ods]
        return self._described(self._summary() + where, lines, len(lines))

    def to_pandas(self, **listed: Unpack[Choice]) -> pd.DataFrame:
        """One row a dependency: od, holds, kind ("split" or "swap"), t, u, seconds."""
        return super().to_pandas(**listed).astype({"t": "Int64", "u": "Int64"})

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {"ods": map(self._record, self.ods)}

    def _table(self, chosen: Chosen) -> Fields:
        nothing = dict.fromkeys(("kind", "t", "u"))
        records = map(self._record, self.ods)
        flat = ({**record, **(record["violation"] or nothing)} for record in records)
        return Fields(("od", "holds", "kind", "t", "u", "seconds"), flat)

    def _record(self, check: OdCheck) -> dict[str, Any]:
        """One entry of "ods"."""
        return {
            "od": str(check.od),
            "holds": check.holds,
            "violation": self._violation(check),
            "seconds": round(check.seconds, 6),
        }

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

    def _entry(self, number: int, most: int, plan: bool) -> Entry:
        check = self.ods[number]
        found, said, folds = self._violation(check), "", []
        if found is not None:
            said = f"{found['kind']}: {_SAID[found['kind']]}"
            cells = [f"{role}.{name}" for role, name in found["cells"]]
            row = [text.value(value) for value in (found["t"], found["u"], *found["values"])]
            folds = [Fold("", [row], [(heading, "left") for heading in ("t", "u", *cells)])]
        return Entry(VERDICTS[check.holds], str(check.od), said, folds=folds, wrong=check.holds is False)

    @cached_property
    def _cells(self) -> Cells | None:
        return None if self._found.relation is None else Cells(self._found.relation)
