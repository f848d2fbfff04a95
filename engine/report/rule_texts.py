"""Reads denial constraints from texts, files and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.rule_text import read_rule_file, read_rules
from tuplewise.engine.errors import InputError, RuleError, joined, message
from tuplewise.engine.options import RulesSyntax
from tuplewise.engine.report.dc_result import DcResult


def read_all_rules(
    given: Any, columns: Sequence[str], syntax: RulesSyntax
) -> tuple[list[DenialConstraint], list[str]]:
    """Each rule once, and a note on each repeated one.

    Parameters
    ----------
    given : text of one rule or several, a DenialConstraint, a DcResult, the pathlib.Path of a file of rules, or a list
        of these

    Raises
    ------
    RuleError : one error with all faults
    InputError : for anything else
    """
    several = isinstance(given, Sequence) and not isinstance(given, str)
    found: dict[DenialConstraint, str] = {}
    notes: list[str] = []
    faults: list[RuleError] = []
    for one in given if several else [given]:
        try:
            for rule, place in _rules(one, columns, syntax):
                if rule in found:
                    notes.append(f"{place} is the same rule as {found[rule]}: it is checked once")
                found.setdefault(rule, place)
        except RuleError as error:
            faults.append(error)
    if faults:
        accepted = next((fault.accepted for fault in faults if fault.accepted), "")
        raise RuleError(joined((fault.said for fault in faults), "\n"), accepted)
    return list(found), notes


def _rules(given: Any, columns: Sequence[str], syntax: RulesSyntax) -> Iterator[tuple[DenialConstraint, str]]:
    """The rules of one of the given things, each with its place."""
    if isinstance(given, str):
        yield from ((rule, repr(given)) for rule in read_rules(given, columns=columns, syntax=syntax))
    elif isinstance(given, PurePath):
        yield from read_rule_file(given, columns=columns, syntax=syntax)
    elif isinstance(given, DenialConstraint):
        yield given, repr(str(given))
    elif isinstance(given, DcResult):
        yield from ((rule, repr(str(rule))) for rule in given.constraints)
    else:
        allowed = "text, a DenialConstraint, a DcResult, a pathlib.Path, or a list of these"
        raise InputError(message("a rule of this type can't be read", type(given).__name__, allowed))
