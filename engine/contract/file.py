"""The file of a contract: YAML that people edit. What is not changed stays as it was, comments included."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuplewise.engine.contract.contract import (
    NONE,
    Contract,
    ContractColumn,
    ContractRule,
    ContractTable,
    Status,
    Tolerance,
)
from tuplewise.engine.contract.forms import Key, Range, ValueSet, check_kind, read_form, read_inclusion
from tuplewise.engine.errors import InputError, RuleError, Wording, joined, message, near_names, number_of
from tuplewise.engine.options import Nulls
from tuplewise.engine.report import files

if TYPE_CHECKING:
    from ruamel.yaml import YAML

    from tuplewise.engine.profile.discover import Profile

VERSION = 1
THING = "contract"
_HEADING = """\
# Rules of tables. `tuplewise check` checks the accepted ones; `tuplewise review` goes through the proposed ones.
"""
_WIDEST = 120


class ContractFile:
    """The file of a contract, open for reading and for changes.

    Parameters
    ----------
    path : the file
    text : its content; None: read it

    Raises
    ------
    InputError : for a file that can't be read, or that is no contract: one error with all faults and their lines
    """

    def __init__(self, path: str | os.PathLike[str], text: str | None = None) -> None:
        self.path = Path(path)
        self._text: str | None = _content(self.path) if text is None else text
        self._document = self._parsed(self._text.replace("\r\n", "\n"))
        self._check()

    @classmethod
    def new(cls, path: str | os.PathLike[str], nulls: str) -> ContractFile:
        """A contract without rules, not yet written; its tables follow with `add_table`."""
        return cls(path, f"{_HEADING}tuplewise_contract: {VERSION}\nnulls: {nulls}\ntables:\n  _: {{}}\nrules: []\n")

    @classmethod
    def opened(cls, path: str | os.PathLike[str], nulls: Nulls) -> ContractFile:
        """The contract at a path, or a new one where there is no file.

        Raises
        ------
        InputError : where it can't be read or written, or where it counts nulls otherwise
        """
        files.check_target(THING, str(path))
        if not Path(path).exists():
            return cls.new(path, nulls)
        kept = cls(path)
        if kept.contract.nulls != nulls:
            hint = Wording("Give {nulls}, or change it in the file", nulls=kept.contract.nulls)
            raise InputError(message(f"nulls of {THING} {str(path)!r}", kept.contract.nulls, nulls, hint))
        return kept

    def propose(self, profile: Profile) -> str:
        """Add the rules of a profile that are new, and write the file. A note says how many."""
        from tuplewise.engine.contract.propose import proposed_rules, proposed_tables

        before = self.contract.rules
        for table in proposed_tables(profile, self.path.parent):
            self.add_table(table)
        found = proposed_rules(profile)
        decided = {_of_column(rule) for rule in before} - {None}
        added = self.add_rules([rule for rule in found if _of_column(rule) not in decided])
        self.save()
        rejected = {rule.identity for rule in before if rule.status == "rejected"}
        refused_of = {_of_column(rule) for rule in before if rule.status == "rejected"} - {None}
        again = sum(rule.identity in rejected or _of_column(rule) in refused_of for rule in found)
        refused = f"; {number_of(again, 'rejected one')} not proposed again" if again else ""
        return f"{number_of(len(added), 'rule')} proposed in {str(self.path)!r}, {len(before):,} were there{refused}"

    @cached_property
    def contract(self) -> Contract:
        """What the file says. Raises RuleError with all rules that can't be read, and their lines."""
        tables = {name: _table(name, entry) for name, entry in self._document["tables"].items()}
        faults: list[str] = []
        rules = []
        for number, entry in enumerate(self._entries):
            try:
                rules.append(_rule(entry, tables))
            except RuleError as error:
                faults.append(f"{self._place(('rules', number))}: rule {entry['id']!r}: {error.said}")
        if faults:
            raise RuleError(joined(faults, "\n"))
        return Contract(str(self.path), self._document.get("nulls", "unknown"), tables, tuple(rules))

    def add_table(self, table: ContractTable) -> None:
        """Add a table, or give one the columns and the path that it lacks."""
        tables = self._document["tables"]
        tables.pop("_", None)
        entry = tables.get(table.name) or {}
        if table.path is not None:
            entry.setdefault("path", table.path)
        if entry.get("columns") is None:
            entry["columns"] = {}
        for column in table.columns or ():
            if column.name not in entry["columns"]:
                entry["columns"][column.name] = _flow(_column_record(column))
        tables[table.name] = entry
        self._changed()

    def add_rules(self, rules: Sequence[ContractRule]) -> list[ContractRule]:
        """Add the rules that the contract does not have yet, whatever became of them there. Returns the added ones."""
        known = {rule.identity for rule in self.contract.rules}
        ids = {rule.id for rule in self.contract.rules}
        added = []
        for rule in rules:
            if rule.identity not in known and rule.id not in ids:
                added.append(rule)
                known.add(rule.identity)
                ids.add(rule.id)
        if self._document.get("rules") is None:
            self._document["rules"] = []
        entries = self._document["rules"]
        if added and not entries and hasattr(entries, "fa"):
            entries.fa.set_block_style()
        entries.extend(_map(_rule_record(rule)) for rule in added)
        self._changed()
        return added

    def set_status(self, rule_id: str, status: Status) -> None:
        """Accept or reject a rule. Raises InputError for an unknown id."""
        self.set_statuses({rule_id: status})

    def set_statuses(self, statuses: Mapping[str, Status]) -> None:
        """Accept or reject rules. Raises InputError for an unknown id, and changes nothing then."""
        entries = {entry["id"]: entry for entry in self._entries}
        for rule_id in statuses:
            if rule_id not in entries:
                hint = near_names(rule_id, entries)
                raise InputError(message(f"no rule of the id in {THING} {str(self.path)!r}", rule_id, hint=hint))
        for rule_id, status in statuses.items():
            entries[rule_id]["status"] = status
        text = self._text
        self._changed()
        if text is not None:
            places = {place.rule_id: place for place in status_places(text)}
            if statuses.keys() <= places.keys():
                self._text = _with_statuses(text, [(places[one], status) for one, status in statuses.items()])

    def text(self) -> str:
        """The content with all changes. Where only statuses were changed, all else is as it was."""
        if self._text is not None:
            return self._text
        written = io.StringIO()
        new_yaml().dump(self._document, written)
        return written.getvalue()

    def is_current(self) -> bool:
        """Whether the file on the disk has this content. Raises InputError where it can't be read."""
        return _content(self.path) == self.text()

    def save(self) -> None:
        """Write the file, whole or not at all."""
        files.check_target(THING, str(self.path))
        with files.replacing([Path(os.path.realpath(self.path))]) as (temporary,):
            temporary.write_text(self.text(), encoding="utf-8", newline="")

    @property
    def _entries(self) -> list[Any]:
        return self._document.get("rules") or []

    def _changed(self) -> None:
        self.__dict__.pop("contract", None)
        self._text = None

    def _parsed(self, text: str) -> Any:
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            return new_yaml().load(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = f"{self.path} line {mark.line + 1}, column {mark.column + 1}" if mark else str(self.path)
            said = (error.problem or error.context or "it can't be read").splitlines()[0]
            raise InputError(message(f"{THING} is no YAML: {place}", said)) from None
        except YAMLError as error:
            raise InputError(message(f"{THING} is no YAML: {self.path}", str(error).splitlines()[0])) from None

    def _check(self) -> None:
        """Raise InputError with all that the schema and the ids have against the document."""
        from jsonschema import Draft202012Validator

        if not isinstance(self._document, dict):
            raise InputError(message(f"{THING} {str(self.path)!r} holds no mapping", hint=_START))
        found = sorted(Draft202012Validator(schema()).iter_errors(self._document), key=lambda e: list(map(str, e.path)))
        faults: list[str] = [Wording("{}: {}", self._place(tuple(error.path)), _said(error)) for error in found]
        if not found:
            faults += self._repeated_ids()
        if faults:
            raise InputError(joined(faults, "\n"))

    def _repeated_ids(self) -> Iterator[str]:
        seen: dict[str, int] = {}
        for number, entry in enumerate(self._entries):
            if entry["id"] in seen:
                first = self._line(("rules", seen[entry["id"]]))
                yield f"{self._place(('rules', number))}: id {entry['id']!r} is that of the rule in line {first}, too"
            seen.setdefault(entry["id"], number)

    def _place(self, path: Sequence[Any]) -> str:
        """The line of a part of the document, and the way to it."""
        way = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")
        return f"{self.path} line {self._line(path)}" + (f", {way}" if way else "")

    def _line(self, path: Sequence[Any]) -> int:
        """The line of a part of the document, from 1."""
        node, line = self._document, 0
        for key in path:
            place = node.lc.data.get(key) if hasattr(node, "lc") and node.lc.data else None
            line = place[0] if place else line
            node = node[key]
        return int(line) + 1


_WRITES_ONE = Wording("profile with {contract:FILE} writes one")
_START = Wording("It begins with tuplewise_contract: {}; {}", VERSION, _WRITES_ONE)


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "schema.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class StatusPlace:
    """Where the status of a rule stands in the text of a contract: `text[start:end]` is `written` with it."""

    rule_id: str
    start: int
    end: int
    before: str
    after: str

    def written(self, status: str) -> str:
        """What stands there with another status."""
        return f"{self.before}{status}{self.after}"


def status_places(text: str) -> list[StatusPlace]:
    """Where the statuses of the rules stand, in the order of the text. For a rule without one, where it may be put.

    A status that is an anchor, an alias or has a tag is left out.
    """
    found = []
    root = new_yaml().compose(text)
    (entries,) = [value for key, value in root.value if key.value == "rules"] or [None]
    break_ = "\r\n" if "\r\n" in text else "\n"
    for entry in entries.value if entries is not None else ():
        values = {key.value: value for key, value in entry.value}
        rule_id, status = values["id"].value, values.get("status")
        if status is None:
            first = entry.value[0][0].start_mark
            after = ", " if entry.flow_style else break_ + " " * first.column
            found.append(StatusPlace(rule_id, first.index, first.index, "status: ", after))
            continue
        start, end = status.start_mark.index, status.end_mark.index
        quote = text[start] if text[start] in "'\"" else ""
        if text[start:end] == f"{quote}{status.value}{quote}":
            found.append(StatusPlace(rule_id, start, end, quote, quote))
    return sorted(found, key=lambda place: place.start)


def _with_statuses(text: str, changes: Sequence[tuple[StatusPlace, str]]) -> str:
    for place, status in sorted(changes, key=lambda change: -change[0].start):
        text = text[: place.start] + place.written(status) + text[place.end :]
    return text


def _of_column(rule: ContractRule) -> tuple[str, str, str] | None:
    """Table, kind and column of a range or a set of values: others are not proposed beside what is there."""
    if isinstance(rule.form, (Range, ValueSet)):
        return (rule.table, rule.kind, rule.form.column)
    return None


def read_contract(given: Any) -> Contract:
    """A contract from the path of its file; a Contract as it is."""
    return given if isinstance(given, Contract) else ContractFile(given).contract


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(message(f"there is no {THING}", str(path), hint=_WRITES_ONE)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(message(f"{THING} can't be read", str(path), hint=str(error))) from None


def new_yaml() -> YAML:
    """A reader and writer that keeps comments."""
    from ruamel.yaml import YAML

    found = YAML()
    found.width = _WIDEST
    found.indent(mapping=2, sequence=4, offset=2)
    found.preserve_quotes = True
    return found


def _map(record: Mapping[str, Any]) -> Any:
    from ruamel.yaml.comments import CommentedMap

    return CommentedMap({key: _one_line(value) for key, value in record.items()})


def _one_line(value: Any) -> Any:
    """A mapping without lists as one line; else as it is."""
    plain = isinstance(value, Mapping) and not any(isinstance(one, list) for one in value.values())
    return _flow(value) if plain else value


def _flow(record: Mapping[str, Any]) -> Any:
    """A mapping that stands on one line."""
    from ruamel.yaml.comments import CommentedMap

    found = CommentedMap(record)
    found.fa.set_flow_style()
    return found


def _said(error: Any) -> str:
    """What the schema has against a value, in our words."""
    value, allowed = error.instance, error.validator_value
    name = error.path[-1] if error.path else THING
    if error.validator == "required":
        missing = [key for key in allowed if key not in value]
        return message(f"{', '.join(missing)} is missing", hint=_START if not error.path else None)
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        unknown = [key for key in value if key not in known]
        hints = dict.fromkeys(filter(None, (near_names(str(one), known) for one in unknown)))
        listed = ", ".join(map(repr, unknown))
        said = "there is no such entry" if len(unknown) == 1 else "there are no such entries"
        return f"{said}: {listed}" + "".join(f". {hint}" for hint in hints)
    if error.validator in ("minProperties", "maxProperties"):
        allowed = " and ".join(error.schema.get("properties", ()))
        return f"{name}: it needs one of {allowed}" if allowed else f"{name}: it needs one at least"
    if error.validator == "pattern":
        return message(str(name), value, "letters, digits, _ . and -, the first a letter or a digit")
    if error.validator == "enum":
        return message(str(name), value, ", ".join(allowed), near_names(str(value), allowed))
    if error.validator == "const":
        return message(str(name), value, str(allowed))
    if error.validator == "type":
        kinds = [allowed] if isinstance(allowed, str) else [one for one in allowed if one != "null"]
        return message(str(name), _plain(value), " or ".join(_TYPES.get(one, one) for one in kinds))
    return f"{name}: {error.message}"


_TYPES = {"object": "a mapping", "array": "a list", "string": "text", "number": "a number", "integer": "a whole number"}


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, type(None))) else type(value).__name__


def _table(name: str, entry: Any) -> ContractTable:
    entry = entry or {}
    columns = None
    if entry.get("columns") is not None:
        described = {column: record or {} for column, record in entry["columns"].items()}
        columns = tuple(ContractColumn(str(c), r.get("type"), r.get("nulls")) for c, r in described.items())
    return ContractTable(str(name), entry.get("path"), columns)


def _rule(entry: Any, tables: Mapping[str, ContractTable]) -> ContractRule:
    kind = check_kind(entry["kind"])
    text = entry["rule"] if isinstance(entry["rule"], str) else str(Key(tuple(map(str, entry["rule"]))))
    table = entry.get("table", "")
    if kind == "ind":
        form: Any = read_inclusion(text, {name: one.column_names for name, one in tables.items()})
    else:
        if not table and len(tables) > 1:
            raise RuleError(message("table is missing", allowed=", ".join(tables)))
        table = table or next(iter(tables))
        if table not in tables:
            raise RuleError(message("there is no table of the name", table, hint=near_names(table, tables)))
        form = read_form(kind, text, tables[table].column_names)
    tolerance = entry.get("tolerance")
    return ContractRule(
        id=entry["id"],
        table="" if kind == "ind" else table,
        kind=kind,
        text=text,
        form=form,
        english=entry.get("english", ""),
        status=entry.get("status", "accepted"),
        severity=entry.get("severity", "error"),
        tolerance=NONE if tolerance is None else Tolerance(tolerance.get("max_violations"), tolerance.get("share")),
        owner=entry.get("owner", ""),
        note=entry.get("note", ""),
        seen=entry.get("seen"),
    )


def _rule_record(rule: ContractRule) -> dict[str, Any]:
    """The entry of a new rule, without what is as by default."""
    record: dict[str, Any] = {"id": rule.id, "table": rule.table, "kind": rule.kind, "rule": rule.text}
    record |= {"english": rule.english, "status": rule.status}
    if rule.severity != "error":
        record["severity"] = rule.severity
    record |= {"tolerance": rule.tolerance.record, "owner": rule.owner, "note": rule.note}
    record["seen"] = dict(rule.seen or {})
    return {key: value for key, value in record.items() if value not in ("", {})}


def _column_record(column: ContractColumn) -> dict[str, Any]:
    record = {"type": column.type, "nulls": column.nulls}
    return {key: value for key, value in record.items() if value is not None}
