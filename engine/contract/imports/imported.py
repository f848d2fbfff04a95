"""What an import hands back, and how its rules are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuplewise.engine.contract.contract import ContractRule, ContractTable, Severity, id_of
from tuplewise.engine.contract.forms import Constant, Form, Kind, constant_of
from tuplewise.engine.dc.constraint import DenialConstraint, Operator, Predicate
from tuplewise.engine.dc.rule_text.scanner import number_constant
from tuplewise.engine.errors import Fault, InputError, message
from tuplewise.engine.table.relation import TypeName


@dataclass
class Imported:
    """Tables and proposed rules that were read from a file of another tool.

    Attributes
    ----------
    origin : what it was read from, for the notes of rules
    notes : what was not read, and why
    """

    origin: str
    tables: list[ContractTable] = field(default_factory=list)
    rules: list[ContractRule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def propose(self, table: str, kind: Kind, form: Form, severity: Severity = "error") -> None:
        """Add a proposed rule, once."""
        text = str(form)
        rule_id = id_of(table, kind, text)
        if all(rule.id != rule_id for rule in self.rules):
            note = f"read from {self.origin}"
            self.rules.append(
                ContractRule(rule_id, table, kind, text, form, status="proposed", severity=severity, note=note)
            )


def constant(value: Any, type_: TypeName | None) -> Constant:
    """The constant that a value of JSON, YAML or Python is written as beside a column of a type."""
    value = value.item() if type(value).__module__ == "numpy" else value
    if isinstance(value, str) and type_ in ("integer", "decimal", "double"):
        try:
            return number_constant(value)
        except Fault:
            return Constant(value, "text")
    return constant_of(value)


def unlike(column: str, operator: Operator, value: Constant) -> DenialConstraint:
    """The constraint that no row has a value in this relation to a constant."""
    return DenialConstraint((Predicate("t", column, operator, None, value),))


def content(path: Any) -> str:
    """The text of a file. Raises InputError where it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(message("file to import can't be read", str(path), hint=str(error))) from None


def names(given: Any) -> list[str]:
    """One name or several, as a list."""
    return [given] if isinstance(given, str) else list(map(str, given or ()))


def listed(texts: Sequence[str]) -> str:
    """Texts in quotes, with commas between them."""
    return ", ".join(map(repr, texts))
