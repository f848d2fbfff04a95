"""Dependencies as a caller gives them: texts, objects, and files of them, one a line or our JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any, Generic, NamedTuple, TypeVar

from tuplewise.engine.dc.rule_text.files import content_of
from tuplewise.engine.errors import InputError, RuleError, Wording, joined, message

T = TypeVar("T")


class Dependencies(NamedTuple, Generic[T]):
    """Dependencies of one kind, and how they are read.

    Attributes
    ----------
    several, one : what they are called, "order dependencies" and "an order dependency"
    objects : types that are read beside text
    allowed : these types in words
    example : one as text
    accepted : what a fault says at its end
    of_file : what a file may hold
    read : makes one of its text, object or entry in JSON; raises RuleError
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
        """Each dependency once, and a note on each that was given again.

        Raises
        ------
        RuleError : one error with all faults of all of them; where there is none, unless a saved result tells of none
            or it `may_be_none`
        InputError : for what is none of the types
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
        """What one thing that was given holds, each with its place in a file."""
        if isinstance(given, (str, *self.objects)):
            yield given, ""
        elif isinstance(given, PurePath):
            yield from self._in_file(Path(given))
        else:
            raise InputError(message(f"{self.one} of this type can't be read", type(given).__name__, self.allowed))

    def _in_file(self, path: Path) -> list[tuple[Any, str]]:
        """The dependencies of a file, each with its place: one a line with `#` comments, or our JSON.

        None only where our JSON says that there are none.
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
