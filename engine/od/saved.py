"""Reading of the JSON of `od discover`. Any damage is one error that names its place."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from tuplewise.engine.errors import InputError, Wording, message
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, Dependencies, context_words, mask_of

COMMAND = "od discover"
_KINDS = {"ascending": ASCENDING, "descending": DESCENDING}
_SAVED = "JSON that `od discover` wrote"
_AGAIN = "It was cut or changed after it was saved: save it again"
_TYPES: dict[type, str] = {
    Mapping: "an object", list: "a list", str: "text", int: "a whole number", bool: "true or false"
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Saved:
    """A discovery as read from its document.

    Attributes
    ----------
    names : the table's columns
    partial : whether a limit ended the discovery
    complete_context : size up to which all minimal dependencies are listed, by columns of the context; -1: none; None:
        all sizes up to `max_context`
    """

    names: tuple[str, ...]
    dependencies: Dependencies
    error: Decimal
    max_context: int | None
    partial: bool
    complete_context: int | None


def read_document(path: str | os.PathLike[str]) -> Any:
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


def saved_of(document: Any, name: str) -> Saved:
    """The content of the JSON object of `od discover`.

    Parameters
    ----------
    name : the name of the document in errors

    Raises
    ------
    InputError
        If it is from another command, lacks a key, has a value of a wrong type or an unknown column, or is truncated
        (fewer dependencies than its count).
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
    return Saved(names, dependencies, _error(options), limit, partial, -1 if partial and within is None else within)


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
    words = context_words(len(names))
    masks = [mask_of(context, words) for context, *_ in rows]
    return Dependencies(
        np.array(masks, dtype=np.uint64).reshape(len(rows), words),
        np.array([kind for _, kind, _, _ in rows], dtype=np.int8),
        np.array([left for _, _, left, _ in rows], dtype=np.int32),
        np.array([right for _, _, _, right in rows], dtype=np.int32),
    )
