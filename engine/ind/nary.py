"""Inclusion dependencies of several columns, found level by level from those of fewer columns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import LimitReached
from tuplewise.engine.ind.dependency import Attribute, InclusionDependency
from tuplewise.engine.ind.foreign_keys import Evidence
from tuplewise.engine.ind.found import FoundInd, FoundInds
from tuplewise.engine.ind.tuples import MISSING, CodedTables, TupleSet
from tuplewise.engine.options import IndDiscoverOptions, LoadOptions
from tuplewise.engine.run import Run

_KEPT_BYTES = 1 << 28  # of tuples of dependent sides, reused by several candidates
AttributePair = tuple[int, int]  # a dependent and a referenced attribute, by position
Candidate = tuple[AttributePair, ...]  # ascending by dependent attribute


def with_several_columns(
    found: FoundInds,
    tables: Mapping[str, Any],
    options: IndDiscoverOptions,
    load_options: Mapping[str, LoadOptions],
    run: Run | None = None,
) -> FoundInds:
    """Extend unary results with the dependencies of up to `options.max_arity` columns, listed after them.

    Parameters
    ----------
    found : the unary dependencies
    tables : paths, frames or Relations, by the names that `found` uses
    load_options : how each is read, by name
    run : None: a run that begins now, with the options' limits

    Returns
    -------
    FoundInds
        `search` has `levels`: for each size the number of candidates, of those checked, and of those that hold.
        `trivial` also counts those that hold because no row has a value in each dependent column; they are not listed,
        and no candidates are built on them. After a limit it is partial, and `notes` say how far it got.

    Notes
    -----
    A candidate of k columns joins two of k - 1 that share their first k - 2 pairs. It is kept if all its k parts of
    k - 1 columns hold (De Marchi, Lopes, Petit, "Unary and n-ary inclusion dependency discovery in relational
    databases", Journal of Intelligent Information Systems 32, 2009, algorithm MIND). The columns of a side are of one
    table; each pairing is found once, dependent columns ascending; no column is paired with itself. Departures: rows
    are compared by codes in hash tables, not by SQL, and the hash table of a referenced side serves all its candidates;
    an exact candidate is dropped at its first missing tuple.
    With an error, a dependency of several columns is found only if it and all its parts miss at most that share: the
    share of missing tuples may be smaller than the share of missing values.
    Time: for each candidate at most the rows of both tables times the columns. Memory: hash tables of 24 to 48 bytes
    per row and column, for one referenced and one dependent side at a time.
    """
    needed: dict[str, dict[str, None]] = {name: {} for name in tables}
    for attribute in (a for f in found.inds for a in (*f.ind.dependent, *f.ind.referenced)):
        needed[attribute.table][attribute.column] = None
    rows = CodedTables(tables, load_options, {n: list(c) for n, c in needed.items()}, as_text=options.as_text)
    search = _Levels(found, rows, Fraction(options.error))
    started = time.perf_counter()
    run = run or Run(options)
    reached = None
    valid = search.start()
    for size in range(2, options.max_arity + 1):
        try:
            valid = search.level(size, valid, run)
        except LimitReached as limit:
            reached = str(limit)
            break
        if not valid:
            break
    notes = list(found.notes)
    if reached is not None:
        size = search.records[-1]["columns"] if search.records else 2
        notes.append(f"{reached}: dependencies of {size} columns or more are not complete")
    return replace(
        found,
        inds=(*found.inds, *search.inds),
        trivial=found.trivial + search.trivial,
        partial=found.partial or reached is not None,
        notes=tuple(notes),
        search={**found.search, "levels": search.records},
        timings_seconds={**found.timings_seconds, "several_columns": time.perf_counter() - started},
    )


@dataclass(frozen=True)
class _Judged:
    """Counts of a candidate that holds: distinct tuples, those of the referenced side and their rows, missing ones."""

    distinct: int
    referenced_distinct: int
    referenced_rows: int
    missing: int


class _Levels:
    """The search of one discovery."""

    def __init__(self, found: FoundInds, rows: CodedTables, error: Fraction) -> None:
        self._attributes, self._rows, self._error = found.attributes, rows, error
        position = {attribute: i for i, attribute in enumerate(found.attributes)}
        numbers = {table.name: i for i, table in enumerate(found.tables)}
        self._table = [numbers[attribute.table] for attribute in found.attributes]
        self._unary = [(position[f.ind.dependent[0]], position[f.ind.referenced[0]]) for f in found.inds]
        self._evidence = Evidence(found.tables)
        self._kept: dict[tuple[int, ...], tuple[NDArray[np.int32], int]] = {}
        self._kept_bytes = 0
        self.inds: list[FoundInd] = []
        self.records: list[dict[str, int]] = []
        self.trivial = 0

    def start(self) -> list[Candidate]:
        """The dependencies of single columns."""
        return [(part,) for part in sorted(self._unary)]

    def level(self, size: int, valid: Sequence[Candidate], run: Run) -> list[Candidate]:
        """The valid candidates of `size` columns, from those of one less. Raises LimitReached and keeps results."""
        record = {"columns": size, "candidates": 0, "checked": 0, "hold": 0}
        self.records.append(record)
        report = run.minded("several columns")
        by_side: dict[tuple[int, ...], list[Candidate]] = {}
        for candidate in self._candidates(valid):
            by_side.setdefault(tuple(sorted(b for _, b in candidate)), []).append(candidate)
            record["candidates"] += 1
            if record["candidates"] % 1024 == 0:
                run.mind()
        if not by_side:
            self.records.pop()
            return []
        holding: list[tuple[Candidate, _Judged]] = []
        try:
            for candidate, judged in self._judge(by_side):
                record["checked"] += 1
                if judged is not None and judged.distinct == 0:
                    self.trivial += 1
                elif judged is not None:
                    holding.append((candidate, judged))
                report(record["checked"] / record["candidates"])
        finally:
            holding.sort(key=lambda entry: ([a for a, _ in entry[0]], [b for _, b in entry[0]]))
            record["hold"] = len(holding)
            self.inds += [self._found(candidate, judged) for candidate, judged in holding]
        return [candidate for candidate, _ in holding]

    def _candidates(self, valid: Sequence[Candidate]) -> Iterator[Candidate]:
        """Candidates of one column more, all of whose parts hold."""

        def joins_with(candidate: Candidate) -> tuple[Candidate, int, int]:
            a, b = candidate[-1]
            return candidate[:-1], self._table[a], self._table[b]

        known = set(valid)
        for (front, _, _), group in groupby(sorted(valid, key=lambda c: (joins_with(c), c)), key=joins_with):
            lasts = [candidate[-1] for candidate in group]
            for i, (a, b) in enumerate(lasts):
                for other_a, other_b in lasts[i + 1 :]:
                    if other_a == a or other_b == b:
                        continue
                    candidate = (*front, (a, b), (other_a, other_b))
                    if all(candidate[:k] + candidate[k + 1 :] in known for k in range(len(front))):
                        yield candidate

    def _judge(
        self, by_side: Mapping[tuple[int, ...], Sequence[Candidate]]
    ) -> Iterator[tuple[Candidate, _Judged | None]]:
        """Each candidate, with None if it doesn't hold. `by_side`: candidates grouped by referenced columns."""
        for columns in sorted(by_side):
            referenced = TupleSet([self._rows.codes(self._attributes[b]) for b in columns])
            for candidate in by_side[columns]:
                yield candidate, self._check(candidate, referenced)

    def _check(self, candidate: Candidate, referenced: TupleSet) -> _Judged | None:
        """Check a candidate; None if it doesn't hold. `referenced`: the tuples of its referenced columns, ascending."""
        parts = sorted(candidate, key=lambda part: part[1])
        columns = [self._rows.translated(self._attributes[a], self._attributes[b]) for a, b in parts]
        exact = self._error == 0
        missing = referenced.find(columns, first_missing=exact) == MISSING
        if exact and missing.any():
            return None
        numbers, distinct = self._dependent(tuple(a for a, _ in candidate))
        lacks = np.zeros(distinct, dtype=np.bool_)
        lacks[numbers[missing]] = True
        lacking = int(np.count_nonzero(lacks))
        if lacking > self._error * distinct:
            return None
        return _Judged(distinct, referenced.distinct, int(np.count_nonzero(referenced.numbers >= 0)), lacking)

    def _dependent(self, columns: tuple[int, ...]) -> tuple[NDArray[np.int32], int]:
        """The tuple number of each row in some columns, and the number of tuples. Partly cached."""
        if columns not in self._kept:
            tuples = TupleSet([self._rows.codes(self._attributes[a]) for a in columns])
            self._kept[columns] = tuples.numbers, tuples.distinct
            self._kept_bytes += tuples.numbers.nbytes
            while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
                self._kept_bytes -= self._kept.pop(next(iter(self._kept)))[0].nbytes
        return self._kept[columns]

    def _found(self, candidate: Candidate, judged: _Judged) -> FoundInd:
        def side(columns: Any) -> tuple[Attribute, ...]:
            return tuple(self._attributes[i] for i in columns)

        ind = InclusionDependency(side(a for a, _ in candidate), side(b for _, b in candidate))
        found = FoundInd(ind, judged.distinct, judged.referenced_distinct, judged.missing)
        return replace(found, evidence=self._evidence.of(found, judged.referenced_rows))
