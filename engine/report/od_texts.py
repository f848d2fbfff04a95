"""Reads order dependencies from texts, files and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuplewise.engine.dc.rule_text.files import tells_of_none
from tuplewise.engine.errors import RuleError, Wording, message
from tuplewise.engine.od.list_od import ACCEPTED, ListOd, read_od
from tuplewise.engine.report.given import DependencyReader

_LISTS = ("ods", "lexicographic")
_FILE = Wording("one order dependency a line, or JSON of `od check`, or of `od discover {lexicographic:N}`")


def read_all_ods(given: Any, names: Sequence[str]) -> tuple[list[ListOd], list[str]]:
    """Each order dependency once, and a note on each repeated one.

    Parameters
    ----------
    given : text, a ListOd, the pathlib.Path of a file, or a list of these
    names : the columns of the table

    Raises
    ------
    RuleError : one error with all faults; also for no dependency at all, unless a saved result says so
    InputError : for anything else
    """
    ods: DependencyReader[ListOd] = DependencyReader(
        several="order dependencies",
        one="an order dependency",
        objects=(ListOd,),
        allowed="text, a ListOd, a pathlib.Path, or a list of these",
        example="month, week -> quarter",
        accepted=ACCEPTED,
        of_file=_FILE,
        read=lambda one: one if isinstance(one, ListOd) else read_od(one, names),
        of_json=_of_json,
    )
    return ods.read_all(given)


def _of_json(document: Any, name: str) -> list[str]:
    """The texts of a saved result. Raises RuleError for other documents."""
    command, result = document.get("command"), document.get("result")
    lists = [result[key] for key in _LISTS if key in result] if isinstance(result, dict) else []
    if not lists:
        hint: str | None = None if command is None else f"It is of {command}"
        if command == "od discover":
            hint = Wording("It was discovered without {lexicographic:N}: it has no dependencies between lists")
        raise RuleError(message("no list of order dependencies in JSON file", name, _FILE, hint))
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
