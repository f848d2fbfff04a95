"""What building and changing a state of inclusion dependencies, and a look into it, hand on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tuplewise.engine.report import ind_model, json, model, text
from tuplewise.engine.report.ind_result import IndResult

if TYPE_CHECKING:
    from tuplewise.engine.ind.dependency import InclusionDependency
    from tuplewise.engine.ind.open_state import AnyState
    from tuplewise.engine.ind.state import Applied


class IndChange:
    """What a revision of a state brought.

    Attributes
    ----------
    revision : 0 of a state that was built
    rows : of each table, by its name
    gained, lost : lists of InclusionDependency that are listed since this revision, or no more
    notes : what a reader should know
    """

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
        self.revision, self.rows = applied.revision, dict(applied.rows)
        self.gained: list[InclusionDependency] = list(applied.gained)
        self.lost: list[InclusionDependency] = list(applied.lost)
        self.notes = list(notes)
        document = ind_model.heading(
            command, state.found(), options=options, notes=notes, total_seconds=timings_seconds["total"]
        )
        document["timings_seconds"] = {name: round(seconds, 6) for name, seconds in timings_seconds.items()}
        document["spark"] = None if spark is None else dict(spark)
        self._document = {
            **document,
            "result": {
                "revision": self.revision,
                "rows": sum(self.rows.values()),
                "gained": [str(one) for one in self.gained],
                "lost": [{"rule": str(one), "broken_by": None} for one in self.lost],
                "state_bytes": state.used_bytes,
            },
        }

    def __repr__(self) -> str:
        return f"<IndChange: revision {self.revision}, {len(self.gained)} gained, {len(self.lost)} lost>"

    def to_dict(self) -> dict[str, Any]:
        """What `tuplewise ind apply --format json` writes."""
        return dict(self._document)

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dump(self._document)

    def to_text(self, *, verbose: bool = False, width: int | None = None, color: bool = False) -> str:
        """For people: the revision, and what it gained and lost."""
        count = f"{len(self.gained):,} inclusion dependenc{'y' if len(self.gained) == 1 else 'ies'}"
        parts = [
            *ind_model.table_lines(self._document, verbose),
            f"revision {self.revision}: {count} gained, {len(self.lost):,} lost",
            *(f"note: {note}" for note in self.notes),
        ]
        parts += [f"+ {text.visible(str(one))}" for one in self.gained]
        parts += [f"- {text.visible(str(one))}" for one in self.lost]
        return text.render(parts, width=width, color=color)


class IndStateResult(IndResult):
    """The inclusion dependencies of a state.

    Attributes
    ----------
    revision : how many changes it has seen
    rows : of each table, by its name
    """

    def __init__(self, state: AnyState, *, options: Mapping[str, Any] | None = None, total_seconds: float = 0) -> None:
        self.revision, self.rows = state.revision, state.rows
        record = model.options_record(state.manifest.options, null_tokens=state.manifest.null_tokens, **(options or {}))
        self._state_bytes = state.used_bytes
        super().__init__(state.found(), options={**record, "error": 0}, total_seconds=total_seconds)

    def __repr__(self) -> str:
        return super().__repr__().replace("<IndResult:", f"<IndStateResult: revision {self.revision},", 1)

    def _summary(self) -> str:
        return f"revision {self.revision}: {super()._summary()}"

    @cached_property
    def _heading(self) -> dict[str, Any]:
        document = super()._heading
        result = {"revision": self.revision, "rows": sum(self.rows.values()), "state_bytes": self._state_bytes}
        return {**document, "command": "ind show", "result": {**result, **document["result"]}}
