"""Decision of order dependencies from discovered ones, in memory or saved as JSON, without rows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, Wording, message, near_names
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, Dependencies, Mask, mask_of
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.lexicographic import OdCheck, SetOd, SignedColumn, each_part, ordered_pair, set_based, signed
from tuplewise.engine.od.list_od import ListOd
from tuplewise.gpu_kernels.words import mask_words

COMMAND = "od discover"
_KINDS = {"ascending": ASCENDING, "descending": DESCENDING}
_SAVED = "JSON that `od discover` wrote"
_AGAIN = "It was cut or changed after it was saved: save it again"
_TYPES: dict[type, str] = {
    Mapping: "an object", list: "a list", str: "text", int: "a whole number", bool: "true or false"
}  # fmt: skip


class SavedOds:
    """The minimal set-based order dependencies of a table, with their consequences.

    Attributes
    ----------
    names : the table's columns; dependencies name them by position
    complete : whether these are all minimal ones (with contexts of at most `max_context` columns)
    max_context : limit of columns in the contexts that were searched, or None

    Notes
    -----
    `X: [] -> A` holds iff A is in X or `Y: [] -> A` was found for some Y inside X. `X: A ~ B` holds iff A or B is
    constant under X, or `Y: A ~ B` of that direction was found for some Y inside X. Both follow from the definition of
    minimal (Li et al., ICDE 2023, section III). An answer costs a pass over the constancies for each new context, and
    one over the contexts found for the pair. Answers are cached.
    """

    def __init__(
        self,
        names: Sequence[str],
        dependencies: Dependencies,
        *,
        complete: bool = True,
        max_context: int | None = None,
    ) -> None:
        self.names, self.dependencies = tuple(names), dependencies
        self.complete, self.max_context = complete, max_context
        self._words = mask_words(len(self.names))
        self._constancies = dependencies.take(dependencies.kind == CONSTANT)
        self._pairs: dict[tuple[int, int, int], Mask] = {}
        pairs = dependencies.take(dependencies.kind >= ASCENDING)
        sides = np.column_stack([pairs.kind, pairs.left, pairs.right]).astype(np.int64)
        distinct, number = np.unique(sides, axis=0, return_inverse=True)
        by_side = np.argsort(number.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(number.ravel(), minlength=len(distinct)))
        for side, of_side in zip(distinct.tolist(), np.split(pairs.contexts[by_side], ends[:-1]), strict=False):
            self._pairs[tuple(side)] = of_side
        self._determined: dict[frozenset[int], frozenset[int]] = {}
        self._implied: dict[SetOd, bool] = {}

    @classmethod
    def of(cls, found: Discovery) -> SavedOds:
        """The dependencies of a discovery. Raises InputError if they are approximate (an error above 0)."""
        return cls._of(
            found.relation.name, tuple(found.relation.column_names), found.dependencies, found.options.error,
            max_context=found.options.max_context, complete_context=found.complete_context, partial=found.partial,
        )  # fmt: skip

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SavedOds:
        """Read the JSON file of `od discover`. Raises InputError as `of_document` does, and if the file is no JSON."""
        return cls.of_document(_read_document(path), Path(path).name)

    @classmethod
    def of_document(cls, document: Any, name: str = "result") -> SavedOds:
        """The dependencies of the JSON object of `od discover`.

        A partial result proves what follows from it. It disproves dependencies whose contexts have a size for which it
        is complete.

        Parameters
        ----------
        name : the name of the document in errors

        Raises
        ------
        InputError
            If it is from another command, approximate, truncated (fewer dependencies than its count), or damaged: it
            lacks a key, or has a value of a wrong type or an unknown column.
        """
        if not isinstance(document, Mapping):
            raise InputError(message(f"saved result {name!r} is not of {COMMAND}", type(document).__name__, _SAVED))
        if document.get("command") != COMMAND:
            hint = f"Save one: tuplewise {COMMAND} TABLE -o FILE.json"
            what = document.get("command", "no command")
            raise InputError(message(f"saved result {name!r} is not of {COMMAND}", what, _SAVED, hint))
        root = _JsonObject(document, name, "")
        tables = root.parts("tables")
        columns = next(tables, _JsonObject({}, name, "tables[0].")).parts("columns")
        names = tuple(column.value("name", str) for column in columns)
        if len(set(names)) < len(names):
            raise InputError(message(f"saved result {name!r} has two columns of one name", list(names), _SAVED, _AGAIN))
        options, result = root.part("options"), root.part("result")
        dependencies = _dependencies(result, names)
        count = result.value("count", int)
        if len(dependencies) != count:
            what = f"saved result {name!r} lists {len(dependencies):,} of its dependencies"
            raise InputError(message(what, count, hint=Wording("Save it without {limit}")))
        partial = root.value("partial", bool)
        limit = options.value("max_context", int, null=True)
        within = result.value("complete_context", int, null=True) if "complete_context" in result.values else None
        how: dict[str, Any] = {"max_context": limit, "complete_context": within, "partial": partial}
        return cls._of(name, names, dependencies, _error(options), **how)

    @classmethod
    def _of(
        cls, name: str, names: tuple[str, ...], dependencies: Dependencies, error: Decimal, *, max_context: int | None,
        complete_context: int | None, partial: bool,
    ) -> SavedOds:  # fmt: skip
        """`complete_context`: of a partial discovery, see Discovery."""
        if error != 0:  # what is approximate implies nothing, since errors add up
            what = f"order dependencies of {name!r} that rows may break: error"
            raise InputError(message(what, str(error), "0", Wording("Discover them without {error}")))
        if not partial:
            return cls(names, dependencies, max_context=max_context)
        size = -1 if complete_context is None else complete_context
        return cls(names, dependencies, complete=size >= 0, max_context=size if size >= 0 else None)

    @property
    def limited(self) -> bool:
        """Whether there may be further dependencies: not all contexts of all sizes were searched."""
        return not self.complete or (self.max_context is not None and self.max_context < len(self.names) - 1)

    def holds(self, wanted: SetOd) -> bool | None:
        """Whether a set-based dependency holds; None if the limited result can't tell."""
        if self.implies(wanted):
            return True
        within = self.max_context is None or len(wanted.context) <= self.max_context
        return False if self.complete and within else None

    def implies(self, wanted: SetOd) -> bool:
        """Whether a set-based dependency follows from the discovered ones."""
        determined = self.determined(wanted.context)
        if wanted.left in determined or wanted.right in determined:
            return True
        if wanted.kind == CONSTANT:
            return False
        known = self._implied.get(wanted)
        if known is None:
            contexts = self._pairs.get(wanted[1:])
            known = contexts is not None and bool(_within(contexts, self._mask(wanted.context)).any())
            self._implied[wanted] = known
        return known

    def determined(self, context: frozenset[int]) -> frozenset[int]:
        """The columns that the context is known to determine, including its own."""
        found = self._determined.get(context)
        if found is None:
            within = _within(self._constancies.contexts, self._mask(context))
            found = self._determined[context] = context.union(self._constancies.left[within].tolist())
        return found

    def orders(self, left: Sequence[SignedColumn], right: Sequence[SignedColumn]) -> bool:
        """Whether `left -> right` is known to hold, for lists as `signed` makes them."""
        return all(map(self.implies, each_part(left, right)))

    def compatible(self, front: Sequence[SignedColumn], item: SignedColumn, other: Sequence[SignedColumn]) -> bool:
        """Whether `front` followed by `item` is known to be compatible with `other` (no two rows are in opposite
        orders), if `front` alone is."""
        columns = frozenset(c for c, _ in front)
        for j, opposite in enumerate(other):
            wanted = ordered_pair(columns.union(c for c, _ in other[:j]), item, opposite)
            if wanted is not None and not self.implies(wanted):
                return False
        return True

    def _mask(self, context: frozenset[int]) -> Mask:
        return mask_of(sorted(context), self._words)


def check_against(saved: SavedOds | Discovery, ods: Iterable[ListOd]) -> list[OdCheck]:
    """Decide list order dependencies from a discovery, without the table.

    Returns
    -------
    list of OdCheck
        `violation` is always None. `holds` is None if a limited discovery (`max_context`, a time limit) can't tell.

    Raises
    ------
    InputError
        For columns that are not in the discovery, with similar names; for an approximate discovery.
    """
    known = known_ods(saved)
    checks = []
    for od in ods:
        began = time.monotonic()
        check_names([item.name for item in (*od.left, *od.right)], known.names)
        left, right = (signed(side, known.names) for side in (od.left, od.right))
        verdicts = [known.holds(part) for part in set_based(left, right)]
        holds = False if False in verdicts else None if None in verdicts else True
        checks.append(OdCheck(od, holds, None, time.monotonic() - began))
    return checks


def known_ods(source: SavedOds | Discovery) -> SavedOds:
    """The dependencies of a saved or new discovery."""
    return SavedOds.of(source) if isinstance(source, Discovery) else source


def check_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Raise InputError for the first name that is no column."""
    for name in given:
        if name not in names:
            what = "no column of that name in the discovery"
            raise InputError(message(what, name, hint=near_names(name, names)))


def _within(contexts: Mask, context: Mask) -> NDArray[np.bool_]:
    """The contexts that are subsets of one context, as a mask."""
    found: NDArray[np.bool_] = np.all(contexts & context == contexts, axis=1)
    return found


def _read_document(path: str | os.PathLike[str]) -> Any:
    """The JSON in a file. Raises InputError if it can't be read, or isn't JSON."""
    name = Path(path).name
    try:
        return json.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(message("saved result can't be read", str(path), hint=error.strerror)) from None
    except UnicodeDecodeError:
        raise InputError(message("saved result is no JSON", name, _SAVED, "It is not UTF-8")) from None
    except json.JSONDecodeError as fault:
        where = f"Line {fault.lineno}, column {fault.colno}: {fault.msg}"
        raise InputError(message("saved result is no JSON", name, _SAVED, where)) from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, lists in lists without end
        raise InputError(message("saved result is no JSON", name, _SAVED, "It is nothing that was saved")) from None


class _JsonObject:
    """An object inside the document. `place`: its path there, with a final dot."""

    def __init__(self, values: Mapping[str, Any], name: str, place: str) -> None:
        self.values, self._name, self._place = values, name, place

    def any_value(self, key: str) -> Any:
        """The value of a key, of any type."""
        if key not in self.values:
            raise InputError(message(f"saved result {self._name!r} lacks", f"{self._place}{key}", _SAVED, _AGAIN))
        return self.values[key]

    def value(self, key: str, kind: type, *, null: bool = False) -> Any:
        """The value of a key, which has to be of this type. `null`: it may be null."""
        value = self.any_value(key)
        if null and value is None:
            return None
        self._check(value, kind, key)
        return value

    def part(self, key: str) -> _JsonObject:
        """The object of a key."""
        return _JsonObject(self.value(key, Mapping), self._name, f"{self._place}{key}.")

    def parts(self, key: str) -> Iterator[_JsonObject]:
        """The objects of a list."""
        for number, entry in enumerate(self.value(key, list)):
            self._check(entry, Mapping, f"{key}[{number}]")
            yield _JsonObject(entry, self._name, f"{self._place}{key}[{number}].")

    def column(self, key: str, places: Mapping[str, int]) -> int:
        """The place of the column that a key names."""
        return self._place_of(self.value(key, str), key, places)

    def columns(self, key: str, places: Mapping[str, int]) -> list[int]:
        """The places of the columns that a list names."""
        listed = self.value(key, list)
        for number, entry in enumerate(listed):
            self._check(entry, str, f"{key}[{number}]")
        return [self._place_of(entry, f"{key}[{number}]", places) for number, entry in enumerate(listed)]

    def unlike(self, key: str, value: object, allowed: str) -> InputError:
        """The error of a value that is not allowed."""
        return InputError(message(f"saved result {self._name!r}: {self._place}{key}", value, allowed, _AGAIN))

    def _place_of(self, column: str, key: str, places: Mapping[str, int]) -> int:
        if column not in places:
            raise self.unlike(key, column, "a column of its table")
        return places[column]

    def _check(self, value: Any, kind: type, key: str) -> None:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            found = "null" if value is None else type(value).__name__
            raise InputError(
                message(f"saved result {self._name!r}: type of {self._place}{key}", found, _TYPES[kind], _AGAIN)
            )


def _error(options: _JsonObject) -> Decimal:
    """The share of rows that may break a dependency: a number, or text that keeps all of its digits."""
    value = options.any_value("error")
    try:
        error = Decimal(str(value))
    except InvalidOperation:
        error = Decimal("NaN")
    if isinstance(value, bool) or not error.is_finite():
        raise options.unlike("error", value, "a number")
    return error


def _dependencies(result: _JsonObject, names: Sequence[str]) -> Dependencies:
    """The dependencies of a document's two lists."""
    places = {name: position for position, name in enumerate(names)}
    rows = [
        (entry.columns("context", places), CONSTANT, entry.column("attribute", places), -1)
        for entry in result.parts("constant")
    ]
    for entry in result.parts("order_compatible"):
        left, right = sorted((entry.column("left", places), entry.column("right", places)))
        direction = entry.value("direction", str)
        if direction not in _KINDS:
            raise entry.unlike("direction", direction, "'ascending' or 'descending'")
        rows.append((entry.columns("context", places), _KINDS[direction], left, right))
    words = mask_words(len(names))
    masks = [mask_of(context, words) for context, *_ in rows]
    return Dependencies(
        np.array(masks, dtype=np.uint64).reshape(len(rows), words),
        np.array([kind for _, kind, _, _ in rows], dtype=np.int8),
        np.array([left for _, _, left, _ in rows], dtype=np.int32),
        np.array([right for _, _, _, right in rows], dtype=np.int32),
    )
