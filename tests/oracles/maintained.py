"""A table that rows enter, leave and change in, by definition: what its rules are is looked up afresh after each step.

Nothing of the project is imported here. Rows are tuples, known by numbers that are given out once: 0, 1, 2, ... A
constraint is a tuple of predicates as `oracles.dc` writes them, a rule is its text.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import permutations

from oracles import dc


def rule_text(names, constraint):
    """`not(t.a == u.a and t.b < t.c)`; names without anything that would have to be quoted."""
    parts = [
        f"t.{names[left]} {op} {'u' if scope == 'across' else 't'}.{names[right]}"
        for left, right, scope, op in constraint
    ]
    return f"not({' and '.join(parts)})"


class MaintainedTable:
    """A table by row ids, with what it was at each revision.

    `columns` is [(name, type)]. A change that can't be made raises KeyError or ValueError and changes nothing.
    """

    def __init__(self, columns, rows=(), key=()):
        self.names = [name for name, _ in columns]
        self.types = [type_ for _, type_ in columns]
        self.key = [self.names.index(name) for name in key]
        self.revisions = [dict(enumerate(map(tuple, rows)))]
        self.next_id = len(self.revisions[0])
        self._check_keys(self.revisions[0])

    @property
    def rows(self):
        """{row id: values} now."""
        return self.revisions[-1]

    @property
    def revision(self):
        return len(self.revisions) - 1

    def insert(self, rows):
        """The ids that the rows got."""
        ids = list(range(self.next_id, self.next_id + len(rows)))
        self._put({**self.rows, **dict(zip(ids, map(tuple, rows), strict=True))})
        self.next_id += len(rows)
        return ids

    def delete(self, ids):
        if len(set(ids)) != len(ids):
            raise ValueError("named twice")
        for i in ids:
            if i not in self.rows:
                raise KeyError(i)
        self._put({i: row for i, row in self.rows.items() if i not in set(ids)})

    def update(self, changed):
        """`changed`: {row id: new values}."""
        for i in changed:
            if i not in self.rows:
                raise KeyError(i)
        self._put({i: tuple(changed.get(i, row)) for i, row in self.rows.items()})

    def _put(self, rows):
        self._check_keys(rows)
        self.revisions.append(dict(sorted(rows.items())))

    def _check_keys(self, rows):
        if not self.key:
            return
        keys = [tuple(None if row[c] is None else dc.sort_key(row[c]) for c in self.key) for row in rows.values()]
        if any(None in key for key in keys) or len(set(keys)) < len(keys):
            raise ValueError("keys")

    def columns(self, revision=-1):
        """The rows of a revision, in order of row id, as `oracles.dc` takes them."""
        held = self.revisions[revision].values()
        return [(n, t, [row[c] for row in held]) for c, (n, t) in enumerate(zip(self.names, self.types, strict=True))]

    def name_of(self, row_id, revision=-1):
        """What messages call a row: its id, or the values of its key."""
        row = self.revisions[revision][row_id]
        return {self.names[c]: row[c] for c in self.key} if self.key else row_id

    def rules(self, groups, *, nulls="unknown", error=Decimal(0), max_predicates=None, minimality="implication"):
        """{rule: violations} now, in result order."""
        find = dc.minimal if minimality == "implication" else dc.minimal_by_subset
        found = find(self.columns(), groups, nulls, error, max_predicates)
        return {rule_text(self.names, constraint): count for constraint, count in found.items()}

    def breaks(self, constraint, t, u, *, nulls="unknown", revision=-1):
        """Whether row t with row u (row t alone: u is None) satisfies all predicates; ids of rows of that revision."""
        held = self.revisions[revision]
        if t not in held or (u is not None and u not in held) or t == u:
            return False
        if (u is None) != dc.names_one_tuple(constraint):
            return False
        pair = [(name, type_, [held[t][c], held[t if u is None else u][c]]) for c, (name, type_) in self._kinds()]
        return all(dc.holds_for(pair, p, 0, 1, nulls) for p in constraint)

    def breaking(self, constraint, *, nulls="unknown", revision=-1):
        """Every pair (t, u), or (t, None), that breaks a constraint in a revision."""
        held = self.revisions[revision]
        pairs = [(t, None) for t in held] if dc.names_one_tuple(constraint) else permutations(held, 2)
        return [(t, u) for t, u in pairs if self.breaks(constraint, t, u, nulls=nulls, revision=revision)]

    def _kinds(self):
        return enumerate(zip(self.names, self.types, strict=True))
