"""What every discovery's result has: its table, what is to be said of the search, and how its queries are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuplewise.engine.errors import Face, all_spelled, number_of, python_option
from tuplewise.engine.report import model, sql, text

if TYPE_CHECKING:
    from tuplewise.engine.table.relation import Relation

SHOWN_IN_REPR = 5


class DiscoveryResult(ABC):
    """A discovery and the document that hands it on. Subclasses say what was found, and how it is listed."""

    def __init__(
        self,
        discovery: Any,
        *,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        total_seconds: float = 0.0,
        face: Face = python_option,
    ) -> None:
        self._found = discovery
        self._options = dict(options or model.options_record(discovery.options))
        self._more_notes = list(notes)
        self._total_seconds = total_seconds
        self._face = face

    @property
    def relation(self) -> Relation:
        relation: Relation = self._found.relation
        return relation

    @property
    def partial(self) -> bool:
        return bool(self._found.partial)

    @property
    def notes(self) -> list[str]:
        return all_spelled((*self.relation.notes, *self._found.notes, *self._more_notes), self._face)

    @property
    def device(self) -> str:
        return str(self._found.device)

    @property
    def device_reason(self) -> str:
        return str(self._found.device_reason)

    @property
    def timings_seconds(self) -> dict[str, float]:
        return dict(self._heading["timings_seconds"])

    @property
    @abstractmethod
    def _heading(self) -> dict[str, Any]:
        """The result as JSON has it, with empty lists at its end instead of what was found."""

    @abstractmethod
    def __len__(self) -> int:
        """How many were found."""

    def _described(self, thing: str, things: str, best: Sequence[str], more: str) -> str:
        """The text of `repr`: how many were found where, and the best of them."""
        count = len(self)
        found = number_of(count, f"minimal {thing}", f"minimal {things}")
        lines = [
            f"<{type(self).__name__}: {found} of {self.relation.name!r} "
            f"({text.bound(self._heading)}{', PARTIAL' if self.partial else ''}), "
            f"{number_of(self.relation.all_rows, 'row')}, {self.device}>",
            *(f"  {text.visible(one)}" for one in best),
        ]
        if count > len(best):
            lines.append(f"  ... and {count - len(best):,} more: {more}")
        return "\n".join(lines)

    def _sql_writer(self, dialect: str, table: str | None) -> sql.Writer:
        sql.check_dialect(dialect)
        return sql.Writer(
            columns=self.relation.column_names,
            types=[c.type for c in self.relation.columns],
            table=[self.relation.name] if table is None else sql.table_parts(table),
            dialect=dialect,
            nulls=self._found.options.nulls,
        )
