"""Reads dependencies from texts, objects and files: one a line, or our JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any, Generic, NamedTuple, TypeVar

from tuplewise.engine.dc.rule_text.files import content_of
from tuplewise.engine.errors import InputError, RuleError, Wording, joined, message

T = TypeVar("T")


class DependencyReader(NamedTuple, Generic[T]):
    """A kind of dependencies, and how to read them.

    Attributes
    ----------
    several, one : names in messages, such as "order dependencies" and "an order dependency"
    objects : types that are read as well as text
    allowed : these types in words
    example : one as text
    accepted : the accepted spellings, which end an error
    of_file : the allowed content of a file
    read : makes a dependency from text, an object or a JSON entry; raises RuleError
    of_json : the entries of a saved result, given its document and its name; raises RuleError
    """

    several: str
    one: str
    objects: tuple[type, ...]
    allowed: str
    example: str
    accepted: str
    of_file: str
    read: Callable[[Any], T]
    of_json: Callable[[Any, str], list[Any]]

    def read_all(self, given: Any, *, may_be_none: bool = False) -> tuple[list[T], list[str]]:
        """Each dependency once, and a note on each repeated one.

        Raises
        ------
        RuleError : one error with all faults; also for no dependency at all, unless a saved result says so or
            `may_be_none` is set
        InputError : for another type
        """
        several = isinstance(given, Iterable) and not isinstance(given, (str, *self.objects))
        found: dict[T, str] = {}
        notes, faults = [], []
        for one in given if several else [given]:
            entries = list(self._entries(one))
            if not entries:
                may_be_none = True
                notes.append(f"no {self.several} in saved result {Path(one).name!r}: nothing to check")
            for entry, place in entries:
                try:
                    dependency = self.read(entry)
                except RuleError as error:
                    faults.append(Wording("{}: {}", place, error.said) if place else error.said)
                    continue
                where = place or repr(str(dependency))
                if dependency in found:
                    notes.append(f"{where} is the same dependency as {found[dependency]}: it is checked once")
                found.setdefault(dependency, where)
        if faults:
            raise RuleError(joined(faults, "\n"), self.accepted)
        if not found and not may_be_none:
            raise RuleError(message(self.several, given, f'one or more, such as "{self.example}"'))
        return list(found), notes

    def _entries(self, given: Any) -> Iterator[tuple[Any, str]]:
        """The entries of one of the given things, each with its place in a file."""
        if isinstance(given, (str, *self.objects)):
            yield given, ""
        elif isinstance(given, PurePath):
            yield from self._in_file(Path(given))
        else:
            raise InputError(message(f"{self.one} of this type can't be read", type(given).__name__, self.allowed))

    def _in_file(self, path: Path) -> list[tuple[Any, str]]:
        """The dependencies of a file, each with its place: one a line with `#` comments, or our JSON.

        Empty only if our JSON says that nothing was found.
        """
        content = content_of(path, f"file of {self.several}")
        if content.lstrip().startswith("{"):
            entries = self.of_json(self._document(content, path.name), path.name)
            return [(entry, f"{path.name} entry {number}") for number, entry in enumerate(entries, 1)]
        lines = ((line.strip(), f"{path.name} line {number}") for number, line in enumerate(content.split("\n"), 1))
        found = [(line, place) for line, place in lines if line and not line.startswith("#")]
        if not found:
            raise RuleError(message(f"no {self.several} in file", path.name, self.of_file))
        return found

    def _document(self, content: str, name: str) -> Any:
        try:
            return json.loads(content)
        except json.JSONDecodeError as fault:
            where = f"line {fault.lineno}, column {fault.colno}: {fault.msg}"
            raise RuleError(message(f"file {name!r} begins as JSON and isn't", where, self.of_file)) from None
        except (ValueError, RecursionError):
            raise RuleError(message(f"no list of {self.several} in JSON file", name, self.of_file)) from None
