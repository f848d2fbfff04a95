"""Inclusion dependencies as a caller gives them: texts, files of them, or results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from tuplewise.engine.dc.rule_text.files import content_of, tells_of_none
from tuplewise.engine.errors import InputError, RuleError, Wording, joined, message
from tuplewise.engine.ind.dependency import ACCEPTED, InclusionDependency, ind_of_record, parse_ind
from tuplewise.engine.ind.found import FoundInd
from tuplewise.engine.report.ind_result import IndResult

_FILE = "one inclusion dependency a line, or JSON of `ind discover` or `ind check`"
Given = str | InclusionDependency | Mapping[str, Any]


def read_all_inds(
    given: Any, tables: Mapping[str, Sequence[str]]
) -> tuple[list[InclusionDependency], list[str]]:
    """Each inclusion dependency once, and a note on each that was given again.

    Parameters
    ----------
    given : text of one, an InclusionDependency, what `discover_inds` returned, a pathlib.Path of a file of them, or a
        list of these
    tables : the columns of each table, by its name

    Raises
    ------
    RuleError : one error with all faults of all of them; where there is none, unless a result tells of none
    InputError : for anything else
    """
    found: dict[InclusionDependency, str] = {}
    notes, faults = [], []
    told_of_none = isinstance(given, IndResult)
    if told_of_none and not len(given):
        notes.append("no inclusion dependencies in the result: nothing to check")
    for one in given if _is_list(given) else [given]:
        texts = list(_texts(one))
        if not texts:
            told_of_none = True
            notes.append(f"no inclusion dependencies in saved result {Path(one).name!r}: nothing to check")
        for text, place in texts:
            try:
                ind = _read(text, tables)
            except RuleError as error:
                faults.append(Wording("{}: {}", place, error.said) if place else error.said)
                continue
            where = place or repr(str(ind))
            if ind in found:
                notes.append(f"{where} is the same dependency as {found[ind]}: it is checked once")
            found.setdefault(ind, where)
    if faults:
        raise RuleError(joined(faults, "\n"), ACCEPTED)
    if not found and not told_of_none:
        raise RuleError(message("inclusion dependencies", given, 'one or more, such as "child.a <= parent.b"'))
    return list(found), notes


def _is_list(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, (str, InclusionDependency))


def _read(given: Given, tables: Mapping[str, Sequence[str]]) -> InclusionDependency:
    if isinstance(given, str):
        return parse_ind(given, tables)
    if isinstance(given, InclusionDependency):
        return parse_ind(str(given), tables)  # its names have to be those of the tables
    return ind_of_record(given, tables)


def _texts(given: Any) -> Iterator[tuple[Given, str]]:
    """What one thing that was given holds, each with its place in a file."""
    if isinstance(given, (str, InclusionDependency)):
        yield given, ""
    elif isinstance(given, FoundInd):
        yield given.ind, ""
    elif isinstance(given, PurePath):
        yield from _of_file(Path(given))
    else:
        allowed = "text, an InclusionDependency, a pathlib.Path, or a list of these"
        raise InputError(message("an inclusion dependency of this type can't be read", type(given).__name__, allowed))


def _of_file(path: Path) -> list[tuple[Given, str]]:
    """The inclusion dependencies of a file, each with its place: one a line with `#` comments, or our JSON.

    None only where our JSON says that there are none.
    """
    content = content_of(path, "file of inclusion dependencies")
    if content.lstrip().startswith("{"):
        entries = _of_json(content, path.name)
        return [(entry, f"{path.name} entry {number}") for number, entry in enumerate(entries, 1)]
    lines = ((line.strip(), f"{path.name} line {number}") for number, line in enumerate(content.split("\n"), 1))
    found: list[tuple[Given, str]] = [(line, place) for line, place in lines if line and not line.startswith("#")]
    if not found:
        raise RuleError(message("no inclusion dependencies in file", path.name, _FILE))
    return found


def _of_json(content: str, name: str) -> list[Given]:
    try:
        document = json.loads(content)
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}: {fault.msg}"
        raise RuleError(message(f"file {name!r} begins as JSON and isn't", where, _FILE)) from None
    result = document.get("result")
    entries = result.get("inds") if isinstance(result, dict) else None
    if not isinstance(entries, list) or (not entries and not tells_of_none(document, "inds")):
        command = document.get("command")
        hint = None if command is None else f"It is of {command}"
        raise RuleError(message("no list of inclusion dependencies in JSON file", name, _FILE, hint))
    return [_entry(entry, f"{name} entry {number}") for number, entry in enumerate(entries, 1)]


def _entry(entry: Any, place: str) -> Given:
    """One entry of a saved result: `{"ind": text}`, `{"dependent": .., "referenced": ..}`, or the text."""
    text = entry.get("ind") if isinstance(entry, dict) else entry
    if isinstance(text, str):
        return text
    if isinstance(entry, dict) and "dependent" in entry:
        return entry
    raise RuleError(message(f"{place} is no inclusion dependency", entry, _FILE))
