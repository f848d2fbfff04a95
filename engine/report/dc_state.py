"""What building and changing a state of denial constraints, and a look into it, hand on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.discovery import DcDiscovery, discovery_of
from tuplewise.engine.dc.found import FoundConstraints
from tuplewise.engine.dc.ranking import SHORTEST_LENGTH, Ranking, lengths
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import DcStateOptions, RankBy
from tuplewise.engine.report import model, sql
from tuplewise.engine.report.change import ChangeResult
from tuplewise.engine.report.dc_result import DcResult
from tuplewise.engine.report.result import Choice, Chosen, Ran
from tuplewise.engine.run import Clock
from tuplewise.engine.table.relation import Column, Relation
from tuplewise.gpu_kernels.device import Device

if TYPE_CHECKING:
    import pandas as pd

    from tuplewise.engine.dc.incremental.applied import AppliedRevision, LostRule
    from tuplewise.engine.dc.incremental.state import DcState

ALGORITHM = "maintained"
_WHY = "the state has kept these rules current since it was built"
_NOT_SEARCHED = "rules of a state are read, not searched"


def state_options(options: DcStateOptions, *more: Any, **others: Any) -> dict[str, Any]:
    """All options of a state, those of its rules among them, as results have them. `more`: other dataclasses."""
    own = {"key": options.key, "counts": options.counting, "sync": options.sync, "index": options.index}
    return model.options_record(*more, options.discover, **{**own, **others})


class DcChange(ChangeResult):
    """What a revision of a state of denial constraints brought, or several.

    Attributes
    ----------
    revision, rows, gained, lost, row_ids : see AppliedRevision
    notes : what a reader should know

    Parameters
    ----------
    since : the revision that the last one is compared with, where it isn't the one before
    """

    CHOICES_OF_TEXT = ("limit",)
    THINGS = ("denial constraint", "denial constraints")

    def __init__(
        self,
        command: str,
        state: DcState,
        applied: AppliedRevision,
        *,
        options: Mapping[str, Any],
        notes: Sequence[str] = (),
        timings_seconds: Mapping[str, float],
        device: Device | None = None,
        since: int | None = None,
    ) -> None:
        ran = Ran(timings_seconds)
        if device is not None:
            ran = Ran(timings_seconds, device.described, device.reason)
        super().__init__(
            command, [_table_record(state, applied.rows)], ran,
            revision=applied.revision, gained=applied.gained, lost=applied.lost, options=options, notes=notes,
        )  # fmt: skip
        self.rows, self.row_ids = applied.rows, applied.row_ids
        self._since_revision, self._counting = since, state.options.discover.error > 0

    @property
    def _facts(self) -> dict[str, Any]:
        since = {} if self._since_revision is None else {"since": self._since_revision}
        return {"revision": self.revision, "rows": self.rows, **since}

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {
            "gained": (rule.rule for rule in self.gained),
            "lost": map(_lost_record, self.lost),
            "row_ids": iter(self.row_ids.tolist()),
        }

    def _since(self) -> str:
        since = "" if self._since_revision is None else f", since revision {self._since_revision}"
        return super()._since() + since

    def _lines(self, limit: int) -> list[str]:
        lines = [*_ids(self.row_ids), *(f"+ {rule.rule}" for rule in self.gained[:limit])]
        lines += _more(len(self.gained) - limit, "gained")
        for one in self.lost[:limit]:
            lines += [f"- {one.rule.rule}", *self._why(one)]
        return lines + _more(len(self.lost) - limit, "lost")

    def _why(self, one: LostRule) -> list[str]:
        """Why a rule is listed no more."""
        if one.broken_by is None:
            listed = self.rows > 1 and not self._counting  # of one row nothing is learnt; many pairs may break an error
            return ["    holds still: a rule that is listed implies it"] if listed else []
        t, u = one.broken_by
        if u is None:
            return [f"    broken by row {_row_text(t)}"]
        return [f"    broken by rows t: {_row_text(t)}, u: {_row_text(u)}"]


class DcStateResult(DcResult):
    """The denial constraints of a state, as of its last revision or an earlier one.

    Attributes
    ----------
    revision : how many changes the state had seen
    rows : how many there were
    """

    COMMAND = "dc show"

    def __init__(
        self,
        state: DcState,
        *,
        revision: int | None = None,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        started: float | None = None,
    ) -> None:
        start = time.monotonic() if started is None else started
        self.revision = state.revision if revision is None else revision
        self._earlier = self.revision != state.revision
        found = _earlier(state, self.revision) if self._earlier else _now(state)
        self.rows = found.relation.all_rows
        self._key = state.options.key
        record = state_options(state.options, null_tokens=tuple(state.null_tokens), **(options or {}))
        said = [] if self._earlier else state.differs_today()
        super().__init__(found, options=record, notes=[*said, *notes], total_seconds=time.monotonic() - start)

    def _counted(self) -> str:
        return f"revision {self.revision}: {super()._counted()}"

    def to_pandas(self, **listed: Unpack[Choice]) -> pd.DataFrame:
        """As `DcResult.to_pandas`; violating_pairs is missing where an earlier revision's aren't known."""
        import pandas as pd

        frame = super().to_pandas(**listed)
        if self._unknown:
            frame["violating_pairs"] = pd.array([pd.NA] * len(frame), dtype="Int64")
        return frame

    def _sql_writer(self, dialect: str, table: str | None) -> sql.Writer:
        """No two rows of a state with a key are alike in it."""
        return replace(super()._sql_writer(dialect, table), key=self._key, key_tells_apart=bool(self._key))

    @property
    def _unknown(self) -> bool:
        """Whether it isn't known how many pairs violate the rules."""
        return self._earlier and bool(self._found.options.error > 0)

    def _index(self, chosen: Chosen) -> NDArray[np.int64]:
        by = chosen.rank_by
        if self._earlier and (by in ("coverage", "genuineness") or (by == "g1" and self._unknown)):
            hint = "Figures that need the rows of then are not kept"
            raise InputError(message("rank_by for an earlier revision", by, "'succinctness'", hint))
        return super()._index(chosen)

    @property
    def _by_default(self) -> RankBy:
        """An order that doesn't change as rows come and go."""
        return "succinctness"

    def _records(self, index: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
        unknown = {"violating_pairs": None, "g1": None} if self._unknown else {}
        return ({**record, **unknown} for record in super()._records(index))

    @property
    def _tables(self) -> list[dict[str, Any]]:
        """Of an earlier revision without what only a look at its rows would tell."""
        tables = super()._tables
        for column in tables[0]["columns"] if self._earlier else ():
            column.update(distinct=None, nulls=None)
        return tables

    @property
    def _facts(self) -> dict[str, Any]:
        return {"revision": self.revision, "rows": self.rows, **super()._facts}


def _now(state: DcState) -> DcDiscovery:
    """What a discovery would hand on, with the rules of the state."""
    clock = Clock()
    relation, arrays = state.relation(), state.arrays()
    clock.lap("read")
    found = FoundConstraints(arrays)
    return discovery_of(
        relation, state.options.discover, state.space, found, ALGORITHM, _WHY, "cpu", _NOT_SEARCHED, clock
    )


def _earlier(state: DcState, revision: int) -> DcDiscovery:
    """The same of an earlier revision, whose rows are not kept: figures that need them are not a number."""
    clock = Clock()
    arrays = state.arrays(revision)
    rows = next(int(one["rows"]) for one in state.history() if one["revision"] == revision)
    columns = tuple(Column(c.name, c.type, c.why, 0, 0) for c in state.columns)
    nothing = np.zeros((len(columns), 0), dtype=np.int32)
    relation = Relation(state.name, state.path, columns, nothing, {}, table_rows=rows)
    ranking, options = Ranking.none(), state.options.discover
    if len(arrays):
        unknown = np.full(len(arrays), np.nan)
        g1 = unknown if options.error > 0 else np.zeros(len(arrays))
        ranking = Ranking(SHORTEST_LENGTH / lengths(arrays, state.space), unknown, g1, unknown)
    clock.lap("read")
    found = discovery_of(
        relation, options, state.space, FoundConstraints(arrays, ranking=ranking), ALGORITHM, _WHY, "cpu",
        _NOT_SEARCHED, Clock(),
    )  # fmt: skip
    return replace(found, timings_seconds=clock.seconds, notes=[])


def _table_record(state: DcState, rows: int) -> dict[str, Any]:
    """The state's table, without what only a look at all rows would tell."""
    columns = [{"name": c.name, "type": c.type, "why": c.why, "distinct": None, "nulls": None} for c in state.columns]
    return {"name": state.name, "path": state.path, "rows": rows, "columns": columns}


def _lost_record(one: LostRule) -> dict[str, Any]:
    broken_by = None if one.broken_by is None else dict(zip(("t", "u"), map(_plain_name, one.broken_by), strict=True))
    return {"rule": one.rule.rule, "broken_by": broken_by}


def _plain_name(name: Any) -> Any:
    """The name of a row as JSON can say it, which has no doubles that are infinite or not a number."""
    if isinstance(name, Mapping):
        return {column: _plain_name(value) for column, value in name.items()}
    if isinstance(name, float) and not math.isfinite(name):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(name, "NaN")
    return name


def _row_text(name: Any) -> str:
    """What a row is named by: its id, or its key."""
    if isinstance(name, Mapping):
        return "(" + ", ".join(f"{column} = {value}" for column, value in name.items()) + ")"
    return str(name)


def _ids(row_ids: NDArray[np.int64]) -> list[str]:
    """Which ids rows that came were given: they follow each other."""
    if not len(row_ids):
        return []
    if len(row_ids) == 1:
        return [f"row id given: {row_ids[0]}"]
    return [f"row ids given: {row_ids[0]} to {row_ids[-1]}"]


def _more(number: int, what: str) -> list[str]:
    return [f"  ... and {number:,} more {what}: --format json"] if number > 0 else []
