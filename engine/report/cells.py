"""Cells of a relation as values: columns in their own types, lists of pairs as Arrow tables, values as JSON or text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Role
from tuplewise.engine.table.relation import NULL_CODE, Relation

if TYPE_CHECKING:
    import pyarrow as pa

Cell = tuple[Role, str]
_MOST_DIGITS = 38


def cells_of(rule: DenialConstraint) -> list[Cell]:
    """The cells that a violation of the rule involves, as (row, column), in the order of its predicates."""
    cells: dict[Cell, None] = {}
    for p in rule.predicates:
        cells[p.left_role, p.left] = None
        if p.right_role is not None and isinstance(p.right, str):
            cells[p.right_role, p.right] = None
    if rule.names_one_tuple:  # it is about t, whatever it calls the row
        return [("t", name) for _, name in cells]
    return list(cells)


class Cells:
    """Looks up cells by column name and row index.

    `key`: columns whose values name rows. Numbers share a dictionary in a relation; here each column has a type of its
    own: integer columns int64 where all of the column's values fit, decimals as many digits as the column needs.
    """

    def __init__(self, relation: Relation, key: Sequence[str] = ()) -> None:
        self.relation = relation
        self.key = tuple(key)
        self._types: dict[int, pa.DataType] = {}
        for name in self.key:
            relation.index_of(name)

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions in the source of rows by index."""
        return rows if self.relation.positions is None else self.relation.positions[rows]

    def values(self, name: str, rows: NDArray[np.int64] | slice = slice(None)) -> pa.Array:
        """The values of a column at some rows, in the column's own type."""
        column = self.relation.index_of(name)
        found = self.relation.values(column, rows)
        type_ = self.type_of(name)
        return found if found.type == type_ else found.cast(type_)

    def type_of(self, name: str) -> pa.DataType:
        """The Arrow type of a column."""
        column = self.relation.index_of(name)
        if column not in self._types:
            self._types[column] = self._own_type(column)
        return self._types[column]

    def _own_type(self, column: int) -> pa.DataType:
        import pyarrow as pa

        described = self.relation.columns[column]
        dictionary = self.relation.dictionaries[described.domain]
        if not pa.types.is_decimal(dictionary.type):
            return dictionary.type
        present = np.unique(self.relation.codes[column])
        values = dictionary.take(pa.array(present[present != NULL_CODE]))
        whole = [pa.int64()] if described.type == "integer" else []
        for type_ in [*whole, *(pa.decimal128(_MOST_DIGITS, s) for s in range(dictionary.type.scale + 1))]:
            try:
                values.cast(type_)
            except pa.ArrowInvalid:
                continue
            return type_
        return dictionary.type

    @cached_property
    def key_tells_apart(self) -> bool:
        """Whether no two rows have the same key; nulls count as a value. Not known where only some rows are here."""
        return bool(self.key) and self.relation.table_rows is None and self._rows_that_share_a_key == 0

    @cached_property
    def key_note(self) -> str | None:
        """What to say of a key that is not unique."""
        known = self.key and self.relation.table_rows is None
        shared = self._rows_that_share_a_key if known else 0
        if not shared:
            return None
        names = ", ".join(map(repr, self.key))
        return f"the key ({names}) is not unique: {shared:,} rows share theirs with another row, so it may mean several"

    @cached_property
    def _rows_that_share_a_key(self) -> int:
        codes = self.relation.codes[[self.relation.index_of(name) for name in self.key]]
        order = np.lexsort(codes)
        ordered = codes[:, order]
        same = (ordered[:, 1:] == ordered[:, :-1]).all(axis=0)
        shared = np.zeros(self.relation.rows, dtype=np.bool_)
        shared[1:] |= same
        shared[:-1] |= same
        return int(np.count_nonzero(shared))

    def names(self, rows: NDArray[np.int64]) -> list[Any]:
        """How JSON names rows: the position of each, or an object of its key; None where the index is -1."""
        there = np.maximum(rows, 0)
        if not self.key or self.relation.rows == 0:
            found: list[Any] = self.positions(there).tolist() if len(rows) else []
        else:
            columns = [json_values(self.values(name, there)) for name in self.key]
            found = [dict(zip(self.key, values, strict=True)) for values in zip(*columns, strict=True)]
        return [None if row < 0 else name for row, name in zip(rows.tolist(), found, strict=True)]

    def schema(self, rules: Sequence[DenialConstraint], *, name_rules: bool) -> pa.Schema:
        """Columns of a list of pairs of these rules.

        With `name_rules` rule_id and rule; then t and u (positions; u is null for a rule about one row), the keys of
        both rows (`t.id`, `u.id`), and each cell that a rule names (`t.zip`), null where the row's rule doesn't.
        """
        import pyarrow as pa

        fields = [pa.field("rule_id", pa.string()), pa.field("rule", pa.string())] if name_rules else []
        fields += [pa.field("t", pa.int64()), pa.field("u", pa.int64())]
        roles: list[Role] = ["t", "u"] if any(not rule.names_one_tuple for rule in rules) else ["t"]
        cells: list[Cell] = [(role, name) for name in self.key for role in roles]
        cells += [cell for rule in rules for cell in cells_of(rule)]
        fields += [pa.field(f"{role}.{name}", self.type_of(name)) for role, name in dict.fromkeys(cells)]
        return pa.schema(fields)

    def table(self, rule: DenialConstraint, pairs: NDArray[np.int64], schema: pa.Schema) -> pa.Table:
        """A list of pairs, int64 (pairs, 2) row indexes t and u (-1: none), of one rule in the columns of `schema`."""
        import pyarrow as pa

        one_row = rule.names_one_tuple
        rows: dict[str, NDArray[np.int64]] = {"t": pairs[:, 0]} if one_row else {"t": pairs[:, 0], "u": pairs[:, 1]}
        columns: dict[str, pa.Array] = {role: pa.array(self.positions(index)) for role, index in rows.items()}
        cells: list[Cell] = [(role, name) for name in self.key for role in ("t", "u") if role in rows]
        for role, name in dict.fromkeys([*cells, *cells_of(rule)]):
            columns[f"{role}.{name}"] = self.values(name, rows[role])
        given = {"rule_id": rule.id, "rule": rule.rule}
        arrays = []
        for field in schema:
            if field.name in given:
                arrays.append(pa.repeat(given[field.name], len(pairs)))
            else:
                arrays.append(columns.get(field.name, pa.nulls(len(pairs), field.type)))
        return pa.Table.from_arrays(arrays, schema=schema)


def texts(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Values as text that loading reads back as the same values; null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(array.type):
        return array.cast(pa.large_string())
    spelled = pc.replace_substring(array.cast(pa.large_string()), " ", "T")
    spelled = pc.replace_substring_regex(spelled, r"\.0+Z$", "Z")
    return pc.replace_substring_regex(spelled, r"(\.[0-9]*[1-9])0+Z$", r"\1Z")


def json_values(array: pa.Array) -> list[Any]:
    """Values as JSON has them: whole numbers, finite doubles and booleans as they are, others as text; null is None."""
    import pyarrow as pa

    if pa.types.is_boolean(array.type) or pa.types.is_integer(array.type):
        found: list[Any] = array.to_pylist()
        return found
    if pa.types.is_floating(array.type):
        names = {float("inf"): "Infinity", float("-inf"): "-Infinity"}
        return [names.get(v, v) if v == v else "NaN" for v in array.to_pylist()]
    if pa.types.is_decimal(array.type) and array.type.scale == 0:
        return [None if v is None else int(v) for v in array.to_pylist()]
    spelled: list[Any] = texts(array).to_pylist()
    return spelled
