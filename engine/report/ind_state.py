"""What building and changing a state of inclusion dependencies, and a look into it, hand on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuplewise.engine.report import model
from tuplewise.engine.report.change import ChangeResult
from tuplewise.engine.report.ind_result import IndResult, table_records
from tuplewise.engine.report.result import Ran

if TYPE_CHECKING:
    from tuplewise.engine.ind.open_state import AnyState
    from tuplewise.engine.ind.state import Applied


class IndChange(ChangeResult):
    """What a revision of a state of inclusion dependencies brought.

    Attributes
    ----------
    revision : 0 of a state that was built
    rows : of each table, by its name
    gained, lost : lists of InclusionDependency that are listed since this revision, or no more
    notes : what a reader should know
    """

    THINGS = ("inclusion dependency", "inclusion dependencies")

    def __init__(
        self,
        command: str,
        state: AnyState,
        applied: Applied,
        *,
        options: Mapping[str, Any],
        notes: Sequence[str] = (),
        timings_seconds: Mapping[str, float],
        spark: Mapping[str, str] | None = None,
    ) -> None:
        found = state.found()
        super().__init__(
            command, table_records(found.tables), Ran(timings_seconds, found.device, found.device_reason, spark),
            revision=applied.revision, gained=applied.gained, lost=applied.lost, options=options, notes=notes,
        )  # fmt: skip
        self.rows = dict(applied.rows)
        self._state_bytes = state.used_bytes

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "revision": self.revision,
            "rows": sum(self.rows.values()),
            "gained": [str(one) for one in self.gained],
            "lost": [{"rule": str(one), "broken_by": None} for one in self.lost],
            "state_bytes": self._state_bytes,
        }


class IndStateResult(IndResult):
    """The inclusion dependencies of a state.

    Attributes
    ----------
    revision : how many changes it has seen
    rows : of each table, by its name
    """

    COMMAND = "ind show"

    def __init__(self, state: AnyState, *, options: Mapping[str, Any] | None = None, total_seconds: float = 0) -> None:
        self.revision, self.rows = state.revision, state.rows
        record = model.options_record(state.manifest.options, null_tokens=state.manifest.null_tokens, **(options or {}))
        self._state_bytes = state.used_bytes
        super().__init__(state.found(), options={**record, "error": 0}, total_seconds=total_seconds)

    def _summary(self) -> str:
        return f"revision {self.revision}: {super()._summary()}"

    @property
    def _facts(self) -> dict[str, Any]:
        own = {"revision": self.revision, "rows": sum(self.rows.values()), "state_bytes": self._state_bytes}
        return {**own, **super()._facts}
