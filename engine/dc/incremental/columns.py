"""What a state keeps of each column."""

from __future__ import annotations

from dataclasses import dataclass

from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, Domain, TypeName
from tuplewise.engine.table.typing_columns import ASKED_FOR


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column of a state: its name, the type that its values have for good, and why it has that type."""

    name: str
    type: TypeName
    why: str

    @property
    def domain(self) -> Domain:
        """Columns of one domain share a dictionary, so their codes can be compared."""
        return DOMAIN_OF_TYPE[self.type]


def type_was_inferred(column: KeptColumn) -> bool:
    """Whether a column is text because of what its values spelled: not where that was asked for, or how a frame or a
    Parquet file stores it."""
    return column.type == "text" and column.why != ASKED_FOR and not column.why.startswith("stored as")
