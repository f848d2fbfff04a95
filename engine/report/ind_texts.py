"""Reads inclusion dependencies from texts, files and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuplewise.engine.dc.rule_text.files import tells_of_none
from tuplewise.engine.errors import RuleError, message
from tuplewise.engine.ind.dependency import ACCEPTED, InclusionDependency, ind_of_record, parse_ind
from tuplewise.engine.ind.found import FoundInd
from tuplewise.engine.report.given import DependencyReader
from tuplewise.engine.report.ind_result import IndResult

_FILE = "one inclusion dependency a line, or JSON of `ind discover` or `ind check`"


def read_all_inds(
    given: Any, tables: Mapping[str, Sequence[str]]
) -> tuple[list[InclusionDependency], list[str]]:
    """Each inclusion dependency once, and a note on each repeated one.

    Parameters
    ----------
    given : text, an InclusionDependency, a result of `discover_inds`, the pathlib.Path of a file, or a list of these
    tables : the columns of each table, by its name

    Raises
    ------
    RuleError : one error with all faults; also for no dependency at all, unless a result says so
    InputError : for anything else
    """

    def read(one: str | InclusionDependency | FoundInd | Mapping[str, Any]) -> InclusionDependency:
        if isinstance(one, Mapping):
            return ind_of_record(one, tables)
        text = str(one.ind if isinstance(one, FoundInd) else one)
        return parse_ind(text, tables)  # checks its names against the tables

    inds: DependencyReader[InclusionDependency] = DependencyReader(
        several="inclusion dependencies",
        one="an inclusion dependency",
        objects=(InclusionDependency, FoundInd),
        allowed="text, an InclusionDependency, a pathlib.Path, or a list of these",
        example="child.a <= parent.b",
        accepted=ACCEPTED,
        of_file=_FILE,
        read=read,
        of_json=_of_json,
    )
    found, notes = inds.read_all(given, may_be_none=isinstance(given, IndResult))
    if isinstance(given, IndResult) and not len(given):
        notes.append("no inclusion dependencies in the result: nothing to check")
    return found, notes


def _of_json(document: Any, name: str) -> list[str | Mapping[str, Any]]:
    """The entries of a saved result: `{"ind": text}`, `{"dependent": .., "referenced": ..}`, or the text."""
    result = document.get("result")
    entries = result.get("inds") if isinstance(result, dict) else None
    if not isinstance(entries, list) or (not entries and not tells_of_none(document, "inds")):
        command = document.get("command")
        hint = None if command is None else f"It is of {command}"
        raise RuleError(message("no list of inclusion dependencies in JSON file", name, _FILE, hint))
    return [_entry(entry, f"{name} entry {number}") for number, entry in enumerate(entries, 1)]


def _entry(entry: Any, place: str) -> str | Mapping[str, Any]:
    text = entry.get("ind") if isinstance(entry, dict) else entry
    if isinstance(text, str):
        return text
    if isinstance(entry, dict) and "dependent" in entry:
        return entry
    raise RuleError(message(f"{place} is no inclusion dependency", entry, _FILE))
