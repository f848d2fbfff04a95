"""The Relation: a table as dense, order-preserving int32 ranks. All algorithms work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message, near_names

if TYPE_CHECKING:
    import pyarrow as pa

    from tuplewise.engine.table.reader import Reader

TypeName = Literal["integer", "decimal", "double", "date", "timestamp", "boolean", "text"]
Domain = Literal["number", "double", "date", "timestamp", "boolean", "text"]

NULL_CODE = -1
CODE_BYTES = 4
_NAMES_SHOWN = 5  # in a note

DOMAIN_OF_TYPE: dict[TypeName, Domain] = {
    "integer": "number",
    "decimal": "number",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "boolean": "boolean",
    "text": "text",
}
ORDERED_DOMAINS: frozenset[Domain] = frozenset({"number", "double", "date", "timestamp"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type, and the reason for that type.

    `distinct` is the number of distinct non-null values, `nulls` the number of null rows.
    """

    name: str
    type: TypeName
    why: str
    distinct: int
    nulls: int

    @property
    def domain(self) -> Domain:
        """Columns of one domain share a dictionary, so their codes can be compared."""
        return DOMAIN_OF_TYPE[self.type]

    @property
    def ordered(self) -> bool:
        """Whether discovery uses `<`, `<=`, `>` and `>=` on the column (numbers, dates and timestamps)."""
        return self.domain in ORDERED_DOMAINS


@dataclass(frozen=True, eq=False)
class Relation:
    """A table, encoded.

    Attributes
    ----------
    codes : int32 array (columns, rows), C order, read-only
        Rank of each value in the dictionary of its column's domain, 0-based and dense over the domain; -1 is null.
        Comparing two codes of one domain compares the values, exactly; null is lower than every value.
    dictionaries : mapping from domain to pyarrow array
        Ascending distinct values of all columns of the domain; `codes[c, r]` indexes it.
    positions : int64 array (rows,) or None
        0-based position of each row among the data rows of its source; None where it is the row's index.
    timings_seconds : seconds of "session", "load" and "encode"
    spark : "version" and "master" of the session that loaded it; None if no JVM was needed
    table_rows : rows of the whole table, if the relation holds only some of them (those that a check in Spark lists)
    reader : the reader of the file and the reason for it; None for a frame
    """

    name: str
    path: str | None
    columns: tuple[Column, ...]
    codes: NDArray[np.int32]
    dictionaries: Mapping[Domain, pa.Array]
    positions: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()
    timings_seconds: Mapping[str, float] = field(default_factory=dict)
    spark: Mapping[str, str] | None = None
    table_rows: int | None = None
    reader: Reader | None = None

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])

    @property
    def all_rows(self) -> int:
        """Rows of the whole table, even if the relation holds only some of them."""
        return self.rows if self.table_rows is None else self.table_rows

    @property
    def column_names(self) -> list[str]:
        return [c.name for c in self.columns]

    def index_of(self, name: str) -> int:
        """The index of a column. Raises InputError with similar names if there is none."""
        for i, column in enumerate(self.columns):
            if column.name == name:
                return i
        hint = near_names(name, self.column_names)
        raise InputError(message(f"no column of that name in table {self.name!r}", name, hint=hint))

    def position_of(self, row: int) -> int:
        """The position in the source of the row at index `row`."""
        return int(row if self.positions is None else self.positions[row])

    def select(self, names: Sequence[str]) -> Relation:
        """The same rows with these columns only, in this order. Dictionaries are kept whole (ranks stay comparable)."""
        index = [self.index_of(n) for n in names]
        codes = np.ascontiguousarray(self.codes[index])
        codes.setflags(write=False)
        return replace(self, columns=tuple(self.columns[i] for i in index), codes=codes)

    def values(self, column: int, rows: NDArray[Any] | slice = slice(None)) -> pa.Array:
        """The values of a column at some row indexes, in the type of its domain (null where the code is -1)."""
        import pyarrow as pa

        codes = self.codes[column, rows]
        indices = pa.array(codes, mask=codes == NULL_CODE)
        return self.dictionaries[self.columns[column].domain].take(indices)


def idle_columns(relation: Relation, nulls: str) -> NDArray[np.bool_]:
    """Columns that discovery ignores, bool (columns,): those that are entirely null, if nulls are unknown."""
    return np.array([nulls == "unknown" and c.distinct == 0 and c.nulls > 0 for c in relation.columns], dtype=np.bool_)


def note_on_idle(relation: Relation, nulls: str) -> list[str]:
    """A note on columns that discovery ignores, if any; see `idle_columns`."""
    names = [relation.columns[i].name for i in np.flatnonzero(idle_columns(relation, nulls))]
    if not names:
        return []
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    listed = ", ".join(map(repr, names[:_NAMES_SHOWN])) + more
    subject = f"column {listed} has" if len(names) == 1 else f"columns {listed} have"
    return [f"{subject} no values: left out"]
