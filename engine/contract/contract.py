"""A contract: tables, and the rules that people keep, refuse or have yet to look at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from tuplewise.engine.contract.forms import Form, InclusionDependency, Kind
from tuplewise.engine.errors import InputError, message, near_names
from tuplewise.engine.options import Nulls
from tuplewise.engine.table.relation import TypeName

Status = Literal["proposed", "accepted", "rejected"]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How many may break a rule before a check fails: so many, or a share of those that it speaks of.

    Examples
    --------
    >>> Tolerance(share=0.01).allows(10, 1000), Tolerance(share=0.01).allows(11, 1000), Tolerance().allows(1, 1000)
    (True, False, False)
    """

    max_violations: int | None = None
    share: float | None = None

    def allows(self, exceptions: int, of: int) -> bool:
        """Whether so many, `of` all, are within it. Exact: a share is the decimal that it is written as."""
        if self.share is not None:
            return exceptions <= Fraction(str(self.share)) * of
        return exceptions <= (self.max_violations or 0)

    @property
    def record(self) -> dict[str, Any]:
        """As JSON and the file have it: empty where none may break the rule."""
        both = {"max_violations": self.max_violations, "share": self.share}
        return {name: value for name, value in both.items() if value is not None}

    def __str__(self) -> str:
        if self.share is not None:
            return f"{self.share * 100:.12g} %"
        return f"{self.max_violations or 0:,}"


NONE = Tolerance()


@dataclass(frozen=True)
class ContractRule:
    """A rule of a contract.

    Attributes
    ----------
    table : the table that it is about; "" of an inclusion dependency
    text : the rule as the file has it
    form : what it says
    english : the same in words; "" where the file has none
    seen : what profiling saw of it: rows, exceptions, evidence, strength, examples
    """

    id: str
    table: str
    kind: Kind
    text: str
    form: Form
    english: str = ""
    status: Status = "accepted"
    severity: Severity = "error"
    tolerance: Tolerance = NONE
    owner: str = ""
    note: str = ""
    seen: Mapping[str, Any] | None = None

    @property
    def subject(self) -> str:
        """The table that it is about; of an inclusion dependency the one that refers."""
        return self.form.dependent[0].table if isinstance(self.form, InclusionDependency) else self.table

    @property
    def is_strict(self) -> bool:
        """Whether nothing may break it."""
        return not self.tolerance.max_violations and not self.tolerance.share

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two rules the same: table, kind and canonical text."""
        return (self.table, self.kind, str(self.form))


def id_of(table: str, kind: str, text: str) -> str:
    """The id of a new rule: its kind, and eight hexadecimal digits of the SHA-256 of its table and text.

    Examples
    --------
    >>> id_of("people", "fd", "zip -> city")
    'fd-8fbf3b3d'
    """
    return f"{kind}-{hashlib.sha256(f'{table}: {text}'.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class ContractColumn:
    """A column. `type`: None: any. `nulls`: share of rows without a value when the contract was written."""

    name: str
    type: TypeName | None = None
    nulls: float | None = None


@dataclass(frozen=True)
class ContractTable:
    """A table. `path`: where it was; `columns`: in order; None where the contract names none."""

    name: str
    path: str | None = None
    columns: tuple[ContractColumn, ...] | None = None

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns or ()]


@dataclass(frozen=True)
class Contract:
    """Tables and rules, in the order of the file.

    Attributes
    ----------
    name : what messages call it: the path of its file
    nulls : "unknown": rows with a null in a rule's columns are left out; "value": a null is a value
    """

    name: str
    nulls: Nulls
    tables: Mapping[str, ContractTable]
    rules: Sequence[ContractRule]

    def accepted(self, table: str | None = None) -> list[ContractRule]:
        """The rules that are checked and exported: of a table, or all.

        Raises InputError for a table that the contract doesn't have.
        """
        if table is not None and table not in self.tables:
            hint = near_names(table, self.tables)
            raise InputError(message(f"no table of this name in contract {self.name!r}", table, hint=hint))
        return [rule for rule in self.rules if rule.status == "accepted" and table in (None, rule.subject)]
