"""The check of a contract for continuous integration: JUnit XML, and annotations of GitHub's workflows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from tuplewise.engine.contract.check import CheckedColumn, CheckedContract, CheckedRule

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(found: CheckedContract) -> str:
    """JUnit XML: a suite for each table, with a case for each of its columns and rules."""
    suites = ElementTree.Element("testsuites", name=_text(found.contract.name))
    for table in dict.fromkeys([*found.relations, *(one.table for one in found.rules)]):
        columns = [one for one in found.columns if one.table == table]
        rules = [one for one in found.rules if one.table == table]
        cases = [*map(_column_case, columns), *map(_rule_case, rules)]
        suite = ElementTree.SubElement(suites, "testsuite", name=_text(table), tests=str(len(cases)))
        suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
        suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
        suite.set("errors", "0")
        suite.extend(cases)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def github(found: CheckedContract) -> Iterator[str]:
    """Commands that GitHub's workflows show as errors and warnings beside the contract."""
    for column in found.columns:
        if column.failed:
            yield _command("error", found.contract.name, f"column {column.name}", column.said)
    for one in found.rules:
        if one.within is not True:
            level = "error" if one.failed else "warning"
            lines = [f"{one.rule.text}: {one.said}", *(example.text for example in one.examples)]
            yield _command(level, found.contract.name, one.rule.id, "\n".join(lines))
    yield f"{len(found.rules):,} rules and {len(found.columns):,} columns were checked; {found.failures:,} failed\n"


def _command(level: str, file: str, title: str, text: str) -> str:
    properties = f"file={_escaped(file, ':,')},title={_escaped(title, ':,')}"
    return f"::{level} {properties}::{_escaped(text)}\n"


def _escaped(text: str, also: str = "") -> str:
    """A text as workflow commands take it: percent signs, ends of lines and some signs as their codes."""
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{also}" else char for char in text)


def _column_case(column: CheckedColumn) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(column.table), name=_text(f"column {column.name}"))
    if column.failed:
        ElementTree.SubElement(case, "failure", message=_text(column.said))
    return case


def _rule_case(one: CheckedRule) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_text(one.table), name=_text(one.rule.id))
    case.set("time", "0")
    said = f"{one.rule.text}: {one.said}"
    if one.failed:
        failure = ElementTree.SubElement(case, "failure", message=_text(said))
        failure.text = _text("\n".join(example.text for example in one.examples))
    elif one.within is not True:
        ElementTree.SubElement(case, "skipped", message=_text(f"{'undecided' if one.limited else 'warning'}: {said}"))
    elif one.exceptions:
        ElementTree.SubElement(case, "system-out").text = _text(said)
    return case


def _text(text: str) -> str:
    """A text that XML can hold."""
    return _NO_XML.sub("\ufffd", text)
