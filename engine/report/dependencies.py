"""Dependencies as objects with column names, made from the arrays of a discovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Operator, Predicate
from tuplewise.engine.od.dependency import DESCENDING
from tuplewise.engine.table.schema import quote_name
from tuplewise.gpu_kernels.words import as_flags

if TYPE_CHECKING:
    from tuplewise.engine.od.found import Discovery

Direction = Literal["ascending", "descending"]
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class FunctionalDependency:
    """Rows that are equal on the determinant are equal on the dependent.

    Attributes
    ----------
    determinant : column names, in the order of the table; none where the dependent has one value
    dependent : column name
    rows_to_remove : fewest rows to remove so that it holds; 0 in an exact discovery
    error : by the measure that was asked for; of "mu", 1 - mu

    Examples
    --------
    >>> found = FunctionalDependency(("zip", "last name"), "city")
    >>> print(found, found.rule)
    zip, `last name` -> city not(t.zip == u.zip and t.`last name` == u.`last name` and t.city != u.city)
    """

    determinant: tuple[str, ...]
    dependent: str
    rows_to_remove: int = 0
    error: float = 0.0

    FIELDS: ClassVar = ("determinant", "dependent")

    def __str__(self) -> str:
        return _arrow(self.determinant, self.dependent)

    @property
    def rule(self) -> DenialConstraint:
        """The same as a denial constraint."""
        return _denied(self.determinant, (self.dependent, "!="))


@dataclass(frozen=True, slots=True)
class Constancy:
    """`X: [] -> A`: within each class of rows that are equal on the context, the attribute has one value.

    Attributes
    ----------
    context : column names, in the order of the table
    attribute : column name
    rows_to_remove : fewest rows to remove so that it holds; 0 in an exact discovery
    error : by the measure that was asked for; of "mu", 1 - mu

    Examples
    --------
    >>> print(Constancy((), "year"))
    [] -> year
    """

    context: tuple[str, ...]
    attribute: str
    rows_to_remove: int = 0
    error: float = 0.0

    FIELDS: ClassVar = ("context", "attribute")

    def __str__(self) -> str:
        return _arrow(self.context, self.attribute)

    @property
    def rule(self) -> DenialConstraint:
        """The same as a denial constraint."""
        return _denied(self.context, (self.attribute, "!="))


@dataclass(frozen=True, slots=True)
class OrderCompatibility:
    """`X: A ~ B`: within each class of rows that are equal on the context, A and B don't swap.

    Rows can be sorted so that A never falls and B never falls ("ascending"), or so that B never rises ("descending").

    Attributes
    ----------
    context : column names, in the order of the table
    left, right : column names
    direction : "ascending" or "descending"
    rows_to_remove : fewest rows to remove so that it holds; 0 in an exact discovery
    error : by the measure that was asked for; of "mu", 1 - mu

    Examples
    --------
    >>> found = OrderCompatibility(("origin",), "dep", "arr", "descending")
    >>> print(found, found.rule)
    [origin]: dep ~ arr desc not(t.origin == u.origin and t.dep < u.dep and t.arr < u.arr)
    """

    context: tuple[str, ...]
    left: str
    right: str
    direction: Direction
    rows_to_remove: int = 0
    error: float = 0.0

    FIELDS: ClassVar = ("context", "left", "right", "direction")

    def __str__(self) -> str:
        turned = " desc" if self.direction == "descending" else ""
        return f"[{_names(self.context)}]: {quote_name(self.left)} ~ {quote_name(self.right)}{turned}"

    @property
    def rule(self) -> DenialConstraint:
        """The same as a denial constraint; its nulls are values, lower than all others."""
        swapped: Operator = "<" if self.direction == "descending" else ">"
        return _denied(self.context, (self.left, "<"), (self.right, swapped))


@dataclass(frozen=True, slots=True)
class Key:
    """No two rows are equal on these columns.

    Attributes
    ----------
    columns : column names, in the order of the table; none in a table of at most one row
    rows_to_remove : fewest rows to remove so that it holds; 0 in an exact discovery
    error : by the measure that was asked for; of "mu", 1 - mu

    Examples
    --------
    >>> print(Key(("carrier", "flight")))
    [carrier, flight]
    """

    columns: tuple[str, ...]
    rows_to_remove: int = 0
    error: float = 0.0

    FIELDS: ClassVar = ("columns",)

    def __str__(self) -> str:
        return f"[{_names(self.columns)}]"

    @property
    def rule(self) -> DenialConstraint:
        """The same as a denial constraint."""
        return _denied(self.columns)


Named = FunctionalDependency | Constancy | OrderCompatibility | Key
N = TypeVar("N", bound=Named)


class NamedDependencies(Sequence[N], Generic[N]):
    """Some dependencies of a discovery as objects of one kind, made when they are asked for.

    `index`: their numbers in the discovery's arrays, int64.
    """

    def __init__(self, found: Discovery, kind: type[N], index: NDArray[np.int64]) -> None:
        self._found, self._kind, self._index = found, kind, index

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, index: int) -> N: ...

    @overload
    def __getitem__(self, index: slice) -> NamedDependencies[N]: ...

    def __getitem__(self, index: int | slice) -> N | NamedDependencies[N]:
        if isinstance(index, slice):
            return NamedDependencies(self._found, self._kind, self._index[index])
        at = range(len(self))[index]
        return next(iter(NamedDependencies(self._found, self._kind, self._index[at : at + 1])))

    def __iter__(self) -> Iterator[N]:
        for start in range(0, len(self._index), _CHUNK):
            yield from self._made(self._index[start : start + _CHUNK])

    def __repr__(self) -> str:
        return f"[{', '.join(map(str, self))}]"

    def _made(self, index: NDArray[np.int64]) -> Iterator[N]:
        arrays, removals = self._found.dependencies.take(index), self._found.removals
        names = self._found.relation.column_names
        contexts = _contexts(arrays.contexts, names)
        costs = np.zeros(len(index), dtype=np.int64) if removals is None else removals[index]
        errors = costs / max(self._found.relation.all_rows, 1)
        if self._found.errors is not None:
            errors = self._found.errors[index]
        sides = zip(arrays.kind.tolist(), arrays.left.tolist(), arrays.right.tolist(), strict=True)
        make: Any = self._kind
        for context, (kind, left, right), *cost in zip(contexts, sides, costs.tolist(), errors.tolist(), strict=True):
            if self._kind is Key:
                yield make(context, *cost)
            elif self._kind is OrderCompatibility:
                direction = "descending" if kind == DESCENDING else "ascending"
                yield make(context, names[left], names[right], direction, *cost)
            else:
                yield make(context, names[left], *cost)


def _contexts(masks: NDArray[np.uint64], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The column names of contexts, uint64 (contexts, words)."""
    rows, columns = np.nonzero(as_flags(masks, len(names)))
    ends = np.searchsorted(rows, np.arange(len(masks)), side="right").tolist()
    listed = [names[c] for c in columns.tolist()]
    start = 0
    for end in ends:
        yield tuple(listed[start:end])
        start = end


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(quote_name, columns))


def _arrow(columns: Sequence[str], dependent: str) -> str:
    return f"{_names(columns) or '[]'} -> {quote_name(dependent)}"


def _denied(context: Sequence[str], *compared: tuple[str, Operator]) -> DenialConstraint:
    """No two rows are equal on the context and compare so."""
    predicates: list[tuple[str, Operator]] = [*((name, "==") for name in context), *compared]
    return DenialConstraint(tuple(Predicate("t", name, operator, "u", name) for name, operator in predicates))
