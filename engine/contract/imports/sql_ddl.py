"""SQL that defines tables as a contract: keys, references, NOT NULL and CHECK."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tuplewise.engine.contract.contract import Contract, ContractColumn, ContractRule, ContractTable, id_of
from tuplewise.engine.contract.forms import (
    Constant,
    DenialConstraint,
    Form,
    InclusionDependency,
    Key,
    Kind,
    NotNull,
    Range,
    RowOrder,
    ValueSet,
    constant_of,
)
from tuplewise.engine.dc.constraint import EXCHANGED, NULL, Operator, Predicate
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.report.sql import check_dialect
from tuplewise.engine.table.relation import TypeName

_DIALECTS = {"spark": "databricks", "duckdb": "duckdb", "postgres": "postgres", "ansi": ""}
_OPERATORS: dict[str, Operator] = {"eq": "==", "neq": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_NEGATED: dict[Operator, Operator] = {
    "==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "is": "is not", "is not": "is",
}  # fmt: skip
_NO_RULES = ("DefaultColumnConstraint", "CommentColumnConstraint", "AutoIncrementColumnConstraint")
"""Parts of the definition of a column that say nothing of its values."""


class _Unread(Exception):
    """Why a part is not read."""


def read(text: str, name: str, dialect: str = "ansi") -> tuple[Contract, list[str]]:
    """A contract of CREATE TABLE, ALTER TABLE and CREATE UNIQUE INDEX, all rules proposed.

    Parameters
    ----------
    text : statements
    name : what messages call them
    dialect : "spark", "duckdb", "postgres" or "ansi"

    Returns
    -------
    contract : its rules, proposed
    notes : one for each part that was not read

    Raises
    ------
    InputError : for text that can't be parsed, another dialect, or where the package sqlglot is missing
    """
    check_dialect(dialect)
    try:
        import sqlglot
    except ImportError:
        hint = "pip install 'tuplewise[sql]'"
        raise InputError(message("SQL is read by a package that is not installed", "sqlglot", hint=hint)) from None
    import logging

    logger = logging.getLogger("sqlglot")  # it warns of statements that a note tells of
    before, logger.level = logger.level, logging.ERROR
    try:
        trees = sqlglot.parse(text, dialect=_DIALECTS[dialect])
    except sqlglot.errors.SqlglotError as error:
        raise InputError(message(f"SQL can't be read: {name}", str(error).splitlines()[0])) from None
    finally:
        logger.level = before
    reader = _Reader(_DIALECTS[dialect])
    for tree in trees:
        if tree is not None:
            reader.statement(tree)
    return Contract(name, "unknown", reader.tables, tuple(reader.rules.values())), reader.notes


class _Reader:
    """What statements say of tables."""

    def __init__(self, dialect: str) -> None:
        self.tables: dict[str, ContractTable] = {}
        self.rules: dict[str, ContractRule] = {}
        self.notes: list[str] = []
        self._dialect = dialect

    def statement(self, tree: Any) -> None:
        """Read one statement."""
        kind, of = type(tree).__name__, str(tree.args.get("kind") or "").upper()
        if kind == "Create" and of == "TABLE":
            table = _table_of(tree.this)
            self._mention(table)
            for part in tree.this.expressions if type(tree.this).__name__ == "Schema" else ():
                self._part(table, part)
        elif kind == "Alter" and of == "TABLE":
            table = _table_of(tree.this)
            self._mention(table)
            for action in tree.args.get("actions") or ():
                self._part(table, action)
        elif kind == "Create" and of == "INDEX":
            self._index(tree)
        elif kind not in ("Select", "Semicolon"):
            self._note(tree)

    def _index(self, tree: Any) -> None:
        index, table = tree.this, _table_of(tree.this.args["table"])
        if not tree.args.get("unique"):
            return
        params = index.args["params"]
        columns = [one.this for one in params.args.get("columns") or ()]
        if params.args.get("where") or any(type(column).__name__ != "Column" for column in columns):
            self._note(tree)
            return
        self._add(table, "key", Key(tuple(column.name for column in columns)))

    def _part(self, table: str, part: Any) -> None:
        """A column, a constraint of the table, or an action of ALTER TABLE."""
        kind = type(part).__name__
        if kind == "ColumnDef":
            self._mention(table, part.name, _type_of(part))
            for constraint in part.args.get("constraints") or ():
                self._constraint(table, constraint.args["kind"], part.name)
        elif kind in ("AddConstraint", "Constraint"):
            for one in part.expressions:
                self._part(table, one)
        elif kind == "AlterColumn" and part.args.get("allow_null") is False:
            self._add(table, "not_null", NotNull(part.this.name))
        else:
            self._constraint(table, part, None)

    def _constraint(self, table: str, part: Any, column: str | None) -> None:
        kind = type(part).__name__
        if kind in _NO_RULES or (kind == "NotNullColumnConstraint" and part.args.get("allow_null")):
            return
        try:
            for found in self._forms(table, kind, part, column):
                self._add(table, *found)
        except _Unread as why:
            self._note(part, table, str(why))

    def _forms(self, table: str, kind: str, part: Any, column: str | None) -> Iterator[tuple[Kind, Form]]:
        own = [column] if column else []
        if kind == "NotNullColumnConstraint":
            yield from (("not_null", NotNull(name)) for name in own)
        elif kind in ("PrimaryKey", "PrimaryKeyColumnConstraint"):
            columns = own or [_name_of(one) for one in part.expressions]
            yield from (("not_null", NotNull(name)) for name in columns)
            yield "key", Key(tuple(columns))
        elif kind == "UniqueColumnConstraint":
            if part.args.get("nulls"):
                raise _Unread("nulls are equal in it, in the contract they are unknown")
            yield "key", Key(tuple(own or [_name_of(one) for one in part.this.expressions]))
        elif kind in ("ForeignKey", "Reference"):
            reference = part if kind == "Reference" else part.args.get("reference")
            columns = own or [_name_of(one) for one in part.expressions]
            yield "ind", self._reference(table, columns, reference)
        elif kind == "CheckColumnConstraint":
            yield from _checks(part.this)
        else:
            raise _Unread("it is no key, reference, NOT NULL or CHECK")

    def _reference(self, table: str, columns: Sequence[str], reference: Any) -> InclusionDependency:
        if type(reference.this).__name__ != "Schema":
            raise _Unread("it names no columns that it refers to")
        other, theirs = _table_of(reference.this), [_name_of(one) for one in reference.this.expressions]
        for name in theirs:
            self._mention(other, name)
        dependent = tuple(Attribute(table, name) for name in columns)
        return InclusionDependency(dependent, tuple(Attribute(other, name) for name in theirs))

    def _mention(self, table: str, column: str | None = None, type_: TypeName | None = None) -> None:
        """Take note of a table, and of a column of it."""
        known = self.tables.setdefault(table, ContractTable(table))
        if column is not None:
            others = tuple(one for one in known.columns or () if one.name != column)
            before = next((one for one in known.columns or () if one.name == column), None)
            if before is None or type_ is not None:
                self.tables[table] = replace(known, columns=(*others, ContractColumn(column, type_)))

    def _add(self, table: str, kind: Kind, form: Form) -> None:
        text, of = str(form), "" if kind == "ind" else table
        rule = ContractRule(id_of(of, kind, text), of, kind, text, form, status="proposed")
        self.rules.setdefault(rule.id, rule)

    def _note(self, tree: Any, table: str = "", why: str = "") -> None:
        said = " ".join(tree.sql(dialect=self._dialect).split())
        place = f"table {table!r}: " if table else ""
        self.notes.append(f"{place}{said} was not read" + (f": {why}" if why else ""))


def _table_of(tree: Any) -> str:
    """The name of a table, without its schema."""
    return str((tree.this if type(tree).__name__ == "Schema" else tree).name)


def _name_of(tree: Any) -> str:
    name = str(tree.name)
    if type(tree).__name__ not in ("Identifier", "Column", "Ordered") or not name:
        raise _Unread("it is about an expression")
    return name


_TYPES: dict[str, TypeName] = {
    "TINYINT": "integer", "SMALLINT": "integer", "INT": "integer", "BIGINT": "integer", "DECIMAL": "decimal",
    "FLOAT": "double", "DOUBLE": "double", "DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMPTZ": "timestamp",
    "DATETIME": "timestamp", "BOOLEAN": "boolean", "TEXT": "text", "VARCHAR": "text", "CHAR": "text",
}  # fmt: skip


def _type_of(column: Any) -> TypeName | None:
    kind = column.args.get("kind")
    found = _TYPES.get(kind.this.name if kind is not None and hasattr(kind.this, "name") else "")
    scale = [one.name for one in kind.expressions] if found == "decimal" else []
    return "integer" if scale and (len(scale) == 1 or scale[1] == "0") else found


def _checks(tree: Any) -> Iterator[tuple[Kind, Form]]:
    """The rules that a condition says: one for each part between ANDs."""
    parts = list(_parts(tree))
    ends: dict[str, dict[Operator, Constant]] = {}
    found: list[tuple[Kind, Form]] = []
    for part in parts:
        kind = type(part).__name__
        if kind in ("In", "Between") and any(part.args.get(key) for key in ("negate", "symmetric", "query", "unnest")):
            raise _Unread("it is no comparison of columns and constants")
        if kind == "In":
            values = tuple(_constant(one) for one in part.expressions)
            found.append(("values", ValueSet(_column(part.this), values)))
        elif kind == "Between":
            low, high = _constant(part.args["low"]), _constant(part.args["high"])
            found.append(("range", Range(_column(part.this), low, high)))
        elif kind == "Not" and type(part.this).__name__ != "Is":
            predicates = tuple(_predicate(one) for one in _parts(part.this))
            found.append(("dc", DenialConstraint(predicates)))
        else:
            predicate = _predicate(part)
            if isinstance(predicate.right, str):
                found.append(("row", RowOrder(predicate.left, predicate.operator, predicate.right)))
            elif predicate.operator == "is not":
                found.append(("not_null", NotNull(predicate.left)))
            elif predicate.operator in ("<=", ">="):
                ends.setdefault(predicate.left, {})[predicate.operator] = predicate.right
            else:
                found.append(("dc", DenialConstraint((replace(predicate, operator=_NEGATED[predicate.operator]),))))
    found += [("range", Range(column, own.get(">="), own.get("<="))) for column, own in ends.items()]
    yield from found


def _parts(tree: Any) -> Iterator[Any]:
    """The parts of a condition between ANDs, without brackets."""
    kind = type(tree).__name__
    if kind == "Paren":
        yield from _parts(tree.this)
    elif kind == "And":
        yield from _parts(tree.this)
        yield from _parts(tree.expression)
    elif kind == "Not" and type(tree.this).__name__ == "Paren":
        yield type(tree)(this=tree.this.this)
    else:
        yield tree


def _predicate(tree: Any) -> Predicate:
    """A comparison of a column with a column or a constant."""
    kind = type(tree).__name__
    if kind == "Not" and type(tree.this).__name__ == "Is":
        inner = _predicate(tree.this)
        return replace(inner, operator=_NEGATED[inner.operator])
    if kind == "Is" and type(tree.expression).__name__ == "Null":
        return Predicate("t", _column(tree.this), "is not" if tree.args.get("negate") else "is", None, NULL)
    if kind.lower() not in _OPERATORS:
        raise _Unread("it is no comparison of columns and constants")
    left, right, operator = tree.this, tree.expression, _OPERATORS[kind.lower()]
    if not _is_column(left):
        left, right, operator = right, left, EXCHANGED[operator]
    if _is_column(right):
        return Predicate("t", _column(left), operator, "t", _column(right))
    return Predicate("t", _column(left), operator, None, _constant(right))


def _is_column(tree: Any) -> bool:
    kind = type(tree).__name__
    return kind == "Column" or (kind == "Collate" and _is_column(tree.this))


def _column(tree: Any) -> str:
    if type(tree).__name__ == "Collate" and tree.expression.name == "C":
        tree = tree.this
    if type(tree).__name__ != "Column":
        raise _Unread("it is no comparison of columns and constants")
    return str(tree.name)


def _constant(tree: Any) -> Constant:
    kind = type(tree).__name__
    if kind == "Literal":
        return constant_of(str(tree.this) if tree.is_string else Decimal(str(tree.this)))
    if kind == "Neg" and type(tree.this).__name__ == "Literal" and not tree.this.is_string:
        return constant_of(-Decimal(str(tree.this.this)))
    if kind == "Boolean":
        return constant_of(bool(tree.this))
    if kind == "Cast" and type(tree.this).__name__ == "Literal" and tree.to.this.name in _TYPES:
        return constant_of(str(tree.this.this))
    raise _Unread("it is no comparison of columns and constants")
