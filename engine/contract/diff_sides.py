"""What is compared: the rules and columns of a saved result, of a contract, or of a table."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from tuplewise.engine.contract.contract import Contract, Severity, Status, Tolerance
from tuplewise.engine.contract.file import read_contract
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.report.dependencies import Constancy, FunctionalDependency, Key, OrderCompatibility
from tuplewise.engine.report.model import SCHEMA
from tuplewise.engine.report.result import Result

SideKind = Literal["table", "contract", "result"]
RuleKey = tuple[str, str, str]
"""Table ("" where each side has one), kind, text."""


@dataclass(frozen=True)
class SideRule:
    """A rule of one side.

    Attributes
    ----------
    kept : 2: it holds, or is accepted; 1: it is proposed; 0: it is broken, or rejected; None: that is not known
    exceptions, of : how many break it, of so many; None: not known
    share : of all that it speaks of, so much breaks it; None: not known
    status, severity, tolerance : of a contract, and of a check of one
    broken_by : rows that break it, as JSON has them
    why : why it is not kept
    """

    table: str
    kind: str
    text: str
    english: str = ""
    kept: int | None = 2
    exceptions: int | None = None
    of: int | None = None
    share: Fraction | None = None
    status: Status | None = None
    severity: Severity | None = None
    tolerance: Tolerance | None = None
    broken_by: Mapping[str, Any] | None = None
    why: str = ""

    @property
    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "exceptions": self.exceptions,
            "of": self.of,
            "share": None if self.share is None else float(self.share),
            "status": self.status,
            "severity": self.severity,
            "tolerance": None if self.tolerance is None else self.tolerance.record,
        }


@dataclass(frozen=True, slots=True)
class SideColumn:
    """A column of one side; None: not known."""

    table: str
    name: str
    type: str | None
    nulls: float | None

    @property
    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"type": self.type, "nulls": self.nulls}


@dataclass(frozen=True)
class Side:
    """One of the two that are compared.

    Attributes
    ----------
    name : what it is called
    columns : by table and name; None where it names none
    command : that wrote a result
    listed : whether all its rules are listed
    """

    name: str
    kind: SideKind
    tables: tuple[str, ...]
    rules: tuple[SideRule, ...]
    columns: tuple[SideColumn, ...] | None
    command: str = ""
    partial: bool = False
    listed: bool = True


def kind_of(given: Any) -> SideKind:
    """What a path or an object is."""
    if isinstance(given, Contract):
        return "contract"
    if isinstance(given, Result):
        return "result"
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        if path.suffix.lower() in (".yaml", ".yml"):
            return "contract"
        if path.is_file() and _OURS.match(_begin(path)):
            return "result"
    return "table"


_OURS = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"schema"\s*:\s*"tuplewise/')


def _begin(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(4096)
    except OSError:
        return b""


def contract_side(given: Any) -> Side:
    """A contract, from the path of its file."""
    contract = read_contract(given)
    ranks = {"accepted": 2, "proposed": 1, "rejected": 0}
    rules = tuple(
        SideRule(
            rule.table, rule.kind, str(rule.form), rule.english, ranks[rule.status], status=rule.status,
            severity=rule.severity, tolerance=rule.tolerance, why="" if rule.status != "rejected" else "it is rejected",
        )
        for rule in contract.rules
    )  # fmt: skip
    columns = [
        SideColumn(name, column.name, column.type, column.nulls)
        for name, table in contract.tables.items()
        for column in table.columns or ()
    ]
    named = any(table.columns is not None for table in contract.tables.values())
    return Side(contract.name, "contract", tuple(contract.tables), rules, tuple(columns) if named else None)


def result_side(given: Any) -> Side:
    """A result, or the JSON of one. Raises InputError for JSON that `diff` can't read."""
    if isinstance(given, Result):
        return _side_of(f"<{type(given).__name__}>", given.to_dict())
    name = str(given)
    try:
        document = json.loads(Path(given).read_bytes().decode("utf-8-sig"))
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}: {fault.msg}"
        raise InputError(message(f"saved result {name!r} is no JSON", where, hint=_AGAIN)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(message("saved result can't be read", name, hint=str(error))) from None
    return _side_of(name, document)


_AGAIN = "It was cut or changed after it was saved: save it again"


def _side_of(name: str, document: Any) -> Side:
    if document.get("schema") != SCHEMA:
        raise InputError(message(f"saved result {name!r} is of another version", document.get("schema"), repr(SCHEMA)))
    command = document.get("command")
    if not isinstance(command, str) or command not in _READ:
        raise InputError(message(f"saved result {name!r} is of a command", command, ", ".join(_READ)))
    try:
        tables = document["tables"]
        result = document["result"]
        rules = tuple(_READ[command](result, tables))
        columns = tuple(
            SideColumn(t["name"], c["name"], c["type"], _share_of_nulls(c["nulls"], t["rows"]))
            for t in tables
            for c in t["columns"]
        )
        count = result.get("count", result.get("shown", len(rules)))
        names = tuple(table["name"] for table in tables)
        return Side(name, "result", names, rules, columns, command, bool(document["partial"]), len(rules) >= count)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(message(f"saved result {name!r} can't be read", f"{error}", hint=_AGAIN)) from None


def _share_of_nulls(nulls: int | None, rows: int | None) -> float | None:
    return None if nulls is None or rows is None else nulls / max(rows, 1)


def _counted(rule: SideRule, exceptions: int | None, of: int | None) -> SideRule:
    share = None if exceptions is None or of is None else Fraction(int(exceptions), max(int(of), 1))
    return replace(rule, exceptions=exceptions, of=of, share=share)


def _kept(holds: bool | None) -> int | None:
    return None if holds is None else 2 * int(holds)


def _of_profile(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["rules"]:
        table = "" if one["kind"] == "ind" else one["table"]
        rule = SideRule(table, one["kind"], one["rule"], one["english"])
        yield _counted(rule, one["exceptions"], one["rows"])
        for text in one["implies"] if one.get("equivalent") else ():
            yield SideRule(table, one["kind"], text)  # columns that determine each other are listed once


def _of_constraints(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["constraints"]:
        yield _counted(SideRule(_only(tables), "dc", one["rule"]), one["violating_pairs"], result["pairs"])


def _of_fds(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["fds"]:
        named = FunctionalDependency(tuple(one["determinant"]), one["dependent"])
        yield _with_removals(SideRule(_only(tables), "fd", str(named)), one, tables)


def _of_keys(result: Any, tables: Any) -> Iterator[SideRule]:
    costs = result.get("removals") or [{}] * len(result["keys"])
    for columns, cost in zip(result["keys"], costs, strict=True):
        yield _with_removals(SideRule(_only(tables), "key", str(Key(tuple(columns)))), cost, tables)


def _of_orders(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["constant"]:
        named = Constancy(tuple(one["context"]), one["attribute"])
        yield _with_removals(SideRule(_only(tables), "fd", str(named)), one, tables)
    for one in result["order_compatible"]:
        order = OrderCompatibility(tuple(one["context"]), one["left"], one["right"], one["direction"])
        yield _with_removals(SideRule(_only(tables), "od", str(order)), one, tables)


def _with_removals(rule: SideRule, cost: Any, tables: Any) -> SideRule:
    return _counted(rule, cost.get("rows_to_remove", 0), tables[0]["rows"])


def _of_inds(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["inds"]:
        sides = (one["dependent"], one["referenced"])
        text = " <= ".join(side if isinstance(side, str) else ", ".join(side) for side in sides)
        yield _counted(SideRule("", "ind", text), one["missing_values"], one["dependent_distinct"])


def _of_dc_check(result: Any, tables: Any) -> Iterator[SideRule]:
    rows = tables[0]["rows"]
    for one in result["rules"]:
        rule = SideRule(_only(tables), "dc", one["rule"], kept=_kept(one["holds"]))
        if one["pairs"]:
            pair = [one["pairs"][0]["t"], one["pairs"][0].get("u")]
            rule = replace(rule, broken_by=_at_rows([row for row in pair if row is not None]))
        yield _counted(rule, one["violating_pairs"], rows if one["one_row"] else rows * (rows - 1))


def _of_od_check(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["ods"]:
        found = one["violation"]
        broken = None if found is None else _at_rows([found["t"], found["u"]])
        yield SideRule(_only(tables), "od", one["od"], kept=_kept(one["holds"]), broken_by=broken)


def _of_ind_check(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["inds"]:
        rule = SideRule("", "ind", one["ind"], kept=_kept(one["holds"]))
        if one["examples"]:
            first = one["examples"][0]
            rule = replace(rule, broken_by={"text": f"{first['value']!r} is missing", "rows": first["rows"]})
        yield _counted(rule, one["missing_values"], one["dependent_distinct"])


def _of_check(result: Any, tables: Any) -> Iterator[SideRule]:
    for one in result["rules"]:
        tolerance = Tolerance(**one["tolerance"])
        holds = None if one["exceptions"] is None else tolerance.allows(one["exceptions"], one["of"])
        if one["exceptions"] is None and one["failed"]:
            holds = False
        table = "" if one["kind"] == "ind" else one["table"]
        rule = SideRule(
            table, one["kind"], one["rule"], one["english"], _kept(holds), severity=one["severity"],
            tolerance=tolerance, broken_by=one["examples"][0] if one["examples"] else None, why=one["reason"],
        )  # fmt: skip
        yield _counted(rule, one["exceptions"], one["of"] if one["exceptions"] is not None else None)


_READ: dict[str, Callable[[Any, Any], Iterator[SideRule]]] = {
    "profile": _of_profile,
    "dc discover": _of_constraints,
    "fd discover": _of_fds,
    "key discover": _of_keys,
    "od discover": _of_orders,
    "ind discover": _of_inds,
    "dc check": _of_dc_check,
    "od check": _of_od_check,
    "ind check": _of_ind_check,
    "check": _of_check,
}


def _only(tables: Any) -> str:
    name: str = tables[0]["name"] if tables else ""
    return name


def _at_rows(rows: list[int]) -> dict[str, Any]:
    place = f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]} and {rows[1]}"
    return {"text": place, "rows": rows}


