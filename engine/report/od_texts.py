"""Order dependencies as a caller gives them: texts, files of them, or results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from tuplewise.engine.dc.rule_text.files import content_of, tells_of_none
from tuplewise.engine.errors import InputError, RuleError, Wording, joined, message
from tuplewise.engine.od.list_od import ACCEPTED, ListOd, read_od

_LISTS = ("ods", "lexicographic")
_FILE = Wording("one order dependency a line, or JSON of `od check`, or of `od discover {lexicographic:N}`")


def read_all_ods(given: Any, names: Sequence[str]) -> tuple[list[ListOd], list[str]]:
    """Each order dependency once, and a note on each that was given again.

    Parameters
    ----------
    given : text of one, a ListOd, a pathlib.Path of a file of them, or a list of these
    names : the columns of the table

    Raises
    ------
    RuleError : one error with all faults of all of them; where there is none, unless a saved result tells of none
    InputError : for anything else
    """
    several = isinstance(given, Iterable) and not isinstance(given, (str, ListOd))
    found: dict[ListOd, str] = {}
    notes, faults = [], []
    told_of_none = False
    for one in given if several else [given]:
        texts = list(_texts(one))
        if not texts:
            told_of_none = True
            notes.append(f"no order dependencies in saved result {Path(one).name!r}: nothing to check")
        for text, place in texts:
            try:
                od = text if isinstance(text, ListOd) else read_od(text, names)
            except RuleError as error:
                faults.append(Wording("{}: {}", place, error.said) if place else error.said)
                continue
            where = place or repr(str(text))
            if od in found:
                notes.append(f"{where} is the same dependency as {found[od]}: it is checked once")
            found.setdefault(od, where)
    if not found and not faults and not told_of_none:
        raise RuleError(message("order dependencies", given, 'one or more, such as "month, week -> quarter"'))
    if faults:
        raise RuleError(joined(faults, "\n"), ACCEPTED)
    return list(found), notes


def _texts(given: Any) -> Iterator[tuple[str | ListOd, str]]:
    """What one thing that was given holds, each with its place in a file."""
    if isinstance(given, (str, ListOd)):
        yield given, ""
    elif isinstance(given, PurePath):
        yield from _of_file(Path(given))
    else:
        allowed = "text, a ListOd, a pathlib.Path, or a list of these"
        raise InputError(message("an order dependency of this type can't be read", type(given).__name__, allowed))


def _of_file(path: Path) -> list[tuple[str, str]]:
    """The order dependencies of a file, each with its place: one a line with `#` comments, or our JSON.

    None only where our JSON says that there are none.
    """
    content = content_of(path, "file of order dependencies")
    if content.lstrip().startswith("{"):
        return [(text, f"{path.name} entry {number}") for number, text in enumerate(_of_json(content, path.name), 1)]
    lines = ((line.strip(), f"{path.name} line {number}") for number, line in enumerate(content.split("\n"), 1))
    found = [(line, place) for line, place in lines if line and not line.startswith("#")]
    if not found:
        raise RuleError(message("no order dependencies in file", path.name, _FILE))
    return found


def _of_json(content: str, name: str) -> list[str]:
    """The texts of a saved result. Raises RuleError where it has none."""
    what = "no list of order dependencies in JSON file"
    try:
        document = json.loads(content)
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}: {fault.msg}"
        raise RuleError(message(f"file {name!r} begins as JSON and isn't", where, _FILE)) from None
    except (ValueError, RecursionError):
        raise RuleError(message(what, name, _FILE)) from None
    command, result = document.get("command"), document.get("result")
    lists = [result[key] for key in _LISTS if key in result] if isinstance(result, dict) else []
    if not lists:
        hint: str | None = None if command is None else f"It is of {command}"
        if command == "od discover":
            said = "It was discovered without {lexicographic:N}, so that it lists no dependencies between lists"
            hint = Wording(said)
        raise RuleError(message(what, name, _FILE, hint))
    entries = lists[0] if isinstance(lists[0], list) else [lists[0]]
    found = []
    for number, entry in enumerate(entries, 1):
        text = entry.get("od") if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            raise RuleError(message(f"{name} entry {number} is no order dependency", entry, _FILE))
        found.append(text)
    if not found and not any(tells_of_none(document, key, f"{key}_count") for key in _LISTS):
        raise RuleError(message("no order dependencies in file", name, _FILE))
    return found
