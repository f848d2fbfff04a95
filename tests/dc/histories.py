"""A state of denial constraints beside the same table by definition: each step done to both, and both compared."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from dc_tables import groups
from oracles import dc as oracle
from oracles.maintained import MaintainedTable

import tuplewise as tw
from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.incremental.applied import AppliedRevision, LostRule
from tuplewise.engine.dc.incremental.initial import build
from tuplewise.engine.dc.incremental.state import DcState
from tuplewise.engine.options import DcStateOptions
from tuplewise.engine.table.relation import Relation

ARROW = {
    "integer": pa.int64(), "decimal": pa.decimal128(20, 2), "double": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "boolean": pa.bool_(), "text": pa.string(),
}  # fmt: skip
Columns = Sequence[tuple[str, str]]
Row = tuple[Any, ...]
MOST_CONJUNCTIONS = 2600  # that the definition is asked about
FEW_ROWS = 30  # of which every pair is looked at
MANY = 12  # revisions: of more, only what changed since each until now is asked for


def arrow(columns: Columns, rows: Iterable[Row]) -> pa.Table:
    listed = list(rows)
    arrays = [pa.array([row[c] for row in listed], ARROW[type_]) for c, (_, type_) in enumerate(columns)]
    return pa.table(arrays, names=[name for name, _ in columns])


def texts(rules: Iterable[Any]) -> list[str]:
    return [str(rule) for rule in rules]


def as_oracle(rule: DenialConstraint, names: Sequence[str]) -> tuple[tuple[Any, ...], ...]:
    """A constraint as the definition writes it."""
    found = []
    for p in rule.predicates:
        assert p.left_role == "t"
        assert isinstance(p.right, str)
        scope = "across" if p.right_role == "u" else "within"
        found.append((names.index(p.left), names.index(p.right), scope, p.operator))
    return tuple(found)


class History:
    """Rows come, go and change in a state and in the table by definition; `check` compares all that can be asked.

    `by` is what is compared with after each step: "definition" (and discovery), or "discovery" alone, for tables that
    are too large for the definition. `seldom`: the definition is asked in every so many comparisons.
    """

    def __init__(
        self,
        folder: Path,
        columns: Columns,
        rows: Sequence[Row] = (),
        options: DcStateOptions | None = None,
        *,
        by: str = "definition",
        seldom: int = 1,
    ) -> None:
        self.seldom, self.compared = seldom, 0
        self.folder, self.options, self.by, self.kinds = folder, options or DcStateOptions(), by, list(columns)
        self.table = MaintainedTable(columns, rows, self.options.key)
        build(folder, self.relation(), self.options, written_by="test")
        self.state = DcState(folder)
        self.copies = 0
        self.log = [
            f"columns, options = {self.kinds}, {self.options}",
            f"h = History(Path(tempfile.mkdtemp()) / 's', columns, {list(map(tuple, rows))}, options)",
        ]
        self.rules: list[list[str]] = []  # of each revision
        self.steps: list[AppliedRevision | None] = [None]
        self.check()

    def close(self) -> None:
        self.state.close()

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------- steps

    def insert(self, *rows: Row, whole: bool = False) -> AppliedRevision:
        """`whole`: as an Arrow table, else as Python rows."""
        self.log.append(f"h.insert({', '.join(map(str, rows))}, whole={whole})")
        source: Any = arrow(self.kinds, rows) if whole else [list(row) for row in rows]
        applied = self.state.insert(self.state.read(source))
        assert applied.row_ids.tolist() == self.table.insert(rows)
        return self.done(applied)

    def delete(self, *ids: int, by_key: bool = False) -> AppliedRevision:
        self.log.append(f"h.delete({', '.join(map(str, ids))}, by_key={by_key})")
        named: Any = np.array(ids, dtype=np.int64)
        if by_key:
            named = self.state.row_ids_of([self.table.name_of(i) for i in ids])
            assert named.tolist() == list(ids)
        applied = self.state.delete(named)
        self.table.delete(ids)
        return self.done(applied)

    def update(self, changed: Mapping[int, Row], *, by_key: bool = False, whole: bool = False) -> AppliedRevision:
        """Rows by id; by the key that they have and keep with `by_key`."""
        self.log.append(f"h.update({changed}, by_key={by_key}, whole={whole})")
        rows: Any = [dict(zip(self.table.names, row, strict=True)) for row in changed.values()]
        if whole:
            rows = arrow(self.kinds, changed.values())
            if not by_key:
                rows = rows.append_column("row_id", pa.array(list(changed), pa.int64()))
        elif not by_key:
            rows = [{**row, "row_id": i} for i, row in zip(changed, rows, strict=True)]
        applied = self.state.update(self.state.read(rows, with_row_id=not by_key))
        self.table.update(changed)
        return self.done(applied)

    def reverse(self) -> AppliedRevision | None:
        """The last revision undone, as far as changes do that: rows that went come back under new ids."""
        before, now = self.table.revisions[-2], self.table.rows
        changed = {i: before[i] for i in now if i in before and before[i] != now[i]}
        back = [row for i, row in before.items() if i not in now]
        gone = [i for i in now if i not in before]
        if changed:
            return self.update(changed)
        if back:
            return self.insert(*back)
        return self.delete(*gone) if gone else None

    def reopen(self) -> None:
        self.log.append("h.reopen()")
        self.state.close()
        self.state = DcState(self.folder)
        self.check()

    def kill(self) -> None:
        """Go on with a copy of the folder as it lies there, of a state that was never closed."""
        self.log.append("h.kill()")
        self.copies += 1
        copy = self.folder.with_name(f"{self.folder.name.partition('-')[0]}-{self.copies}")
        shutil.copytree(self.folder, copy)
        left, self.folder = self.state, copy
        self.state = DcState(copy)
        left.close()
        self.check()

    def checkpoint(self) -> None:
        self.log.append("h.checkpoint()")
        self.state.checkpoint()
        self.check()

    def done(self, applied: AppliedRevision) -> AppliedRevision:
        self.steps.append(applied)
        assert (applied.revision, applied.rows) == (self.table.revision, len(self.table.rows))
        self.check()
        before, now = self.rules[-2], self.rules[-1]
        assert sorted(texts(applied.gained)) == sorted(set(now) - set(before))
        assert sorted(str(one.rule) for one in applied.lost) == sorted(set(before) - set(now))
        for lost in applied.lost:
            self.check_lost(lost, self.table.revision)
        return applied

    # ---------------------------------------------------------------- comparisons

    def relation(self) -> Relation:
        """The rows that are there, loaded anew."""
        return tw.load(arrow(self.kinds, self.table.rows.values()), name="table")

    def check(self) -> None:
        """The rules are those of discovery in the state's space on the rows that are there; the rest fits."""
        state, wanted = self.state, self.options.discover
        assert (state.revision, state.rows) == (self.table.revision, len(self.table.rows))
        assert state.next_row_id == self.table.next_id
        arrays = state.arrays()
        evidence = replace(wanted, algorithm="evidence")
        found = discover(self.relation(), evidence, space=state.space)
        for name in ("predicates", "sizes", "violations", "one_row"):
            ours, theirs = getattr(arrays, name), getattr(found.arrays, name)
            assert np.array_equal(ours, theirs), f"{name}: {self.difference(found.constraints)}"
        rules = texts(state.constraints())
        self.compared += 1
        asked = self.by == "definition" and self.compared % self.seldom == 0
        if asked and self.conjunctions() <= MOST_CONJUNCTIONS:
            right = self.table.rules(
                groups(state.space),
                nulls=wanted.nulls,
                error=wanted.error,
                max_predicates=wanted.max_predicates,
                minimality=wanted.minimality,
            )
            assert rules == list(right)
            assert arrays.violations.tolist() == list(right.values())
        self.check_rows()
        if len(self.rules) == state.revision:
            self.rules.append(rules)
        assert self.rules[-1] == rules

    def check_rows(self) -> None:
        """The rows are there, in order of their ids, encoded as they would be afresh."""
        relation = self.state.relation()
        assert np.array_equal(relation.codes, self.relation().codes)
        assert relation.column_names == self.table.names
        for c, (_, type_, values) in enumerate(self.table.columns()):
            assert relation.columns[c].type == type_
            held = relation.values(c).to_pylist()
            assert [None if v is None else oracle.sort_key(v) for v in held] == [
                None if v is None else oracle.sort_key(v) for v in values
            ]

    def check_past(self) -> None:
        """Every revision can be asked for, and what changed between any two."""
        state, last = self.state, self.table.revision
        for revision in range(last + 1):
            assert texts(state.constraints(revision)) == self.rules[revision], revision
            for until in range(revision if last <= MANY else last, last + 1):
                changes = state.changes(revision, until)
                before, now = self.rules[revision], self.rules[until]
                assert sorted(texts(changes.gained)) == sorted(set(now) - set(before))
                assert sorted(str(one.rule) for one in changes.lost) == sorted(set(before) - set(now))
                for lost in changes.lost:
                    self.check_lost(lost, self.lost_at(str(lost.rule), until))
        records = list(state.history())
        assert [record["revision"] for record in records] == list(range(last + 1))
        assert [record["rows"] for record in records] == [len(rows) for rows in self.table.revisions]
        for revision, record in enumerate(records):
            before = self.rules[revision - 1] if revision else []
            assert sorted(record["gained"]) == sorted(set(self.rules[revision]) - set(before))
            assert sorted(one["rule"] for one in record["lost"]) == sorted(set(before) - set(self.rules[revision]))

    def lost_at(self, rule: str, until: int) -> int:
        """The revision up to `until` in which a rule was lost last."""
        return next(r for r in range(until, 0, -1) if rule in self.rules[r - 1] and rule not in self.rules[r])

    def check_lost(self, lost: LostRule, revision: int) -> None:
        """A pair is told, that breaks the rule indeed, exactly where the rule doesn't hold any more."""
        nulls = self.options.discover.nulls
        constraint = as_oracle(lost.rule, self.table.names)
        held = self.table.revisions[revision]
        if len(held) <= FEW_ROWS:
            pairs = self.table.breaking(constraint, nulls=nulls, revision=revision)
            error = self.options.discover.error
            broken = len(pairs) > oracle.allowed_violations(len(held), constraint, error)
            told = f"{lost.rule} lost, broken by {lost.broken_by}: {self.story()}"
            assert broken or lost.broken_by is None, told
            # Rows that go can make the same violations too many of all pairs: no pair then broke it
            if broken and (error == 0 or any(self.is_new(row, revision) for pair in pairs for row in pair)):
                assert lost.broken_by is not None, told
        if lost.broken_by is not None:
            named = [self.id_of(name, revision) for name in lost.broken_by]
            assert self.table.breaks(constraint, *named, nulls=nulls, revision=revision), lost

    def is_new(self, row: int | None, revision: int) -> bool:
        """Whether a row came, or was given its values, in a revision."""
        before, now = self.table.revisions[revision - 1 : revision + 1]
        return row is not None and (row not in before or before[row] is not now[row])

    def id_of(self, name: Any, revision: int) -> int | None:
        if name is None or not self.options.key:
            return None if name is None else int(name)
        found = [i for i in self.table.revisions[revision] if self.table.name_of(i, revision) == name]
        assert len(found) == 1, name
        return int(found[0])

    def conjunctions(self) -> int:
        sizes = np.diff(self.state.space.first_predicate) + 1
        return int(np.prod(sizes.astype(float)))

    def difference(self, right: Iterable[Any]) -> str:
        """What is wrong, with how one came here."""
        ours, theirs = texts(self.state.constraints()), texts(right)
        missing = [rule for rule in theirs if rule not in ours]
        wrong = [rule for rule in ours if rule not in theirs]
        return f"missing {missing}, wrong {wrong}; {self.story()}"

    def story(self) -> str:
        """The history as a program."""
        return "\n".join(["", *self.log])
