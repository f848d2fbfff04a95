"""Order dependencies between lists, by the set-based ones to which each is equivalent.

Source: Szlichta, Godfrey, Golab, Kargar, Srivastava, "Effective and complete discovery of bidirectional order
dependencies via set-based axioms", VLDB Journal 27(4), 2018, the mapping of list-based to set-based dependencies.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, DESCENDING, mask_of
from tuplewise.engine.od.list_od import ListOd, OrderedColumn
from tuplewise.engine.run import Run
from tuplewise.engine.table.relation import Relation
from tuplewise.gpu_kernels.device import Device
from tuplewise.gpu_kernels.order import PartitionedRows, lay_out_orders
from tuplewise.gpu_kernels.words import mask_words

SignedColumn = tuple[int, bool]
"""A column by its position, and whether it is ascending."""
Signed = tuple[SignedColumn, ...]


class SetOd(NamedTuple):
    """A set-based dependency: `context: [] -> left` (CONSTANT, right -1), or `context: left ~ right` (left < right)."""

    context: frozenset[int]
    kind: int
    left: int
    right: int


@dataclass(frozen=True)
class OdViolation:
    """Two rows that break a list order dependency.

    Attributes
    ----------
    kind : "split": the rows are equal on the left list and different on the right one; "swap": t is before u on the
        left list and behind u on the right one
    t, u : 0-based positions of the rows in the table's source; t < u of a split
    rows : the same two as indexes into the relation
    """

    kind: Literal["split", "swap"]
    t: int
    u: int
    rows: tuple[int, int]


@dataclass(frozen=True)
class OdCheck:
    """The result of a check of one list order dependency.

    Attributes
    ----------
    holds : None if undecided because of a time limit or a limited saved result
    violation : two rows, if `holds` is False and rows were available
    """

    od: ListOd
    holds: bool | None
    violation: OdViolation | None
    seconds: float


def signed(items: Iterable[OrderedColumn], names: Sequence[str]) -> list[SignedColumn]:
    """A list by positions of columns in `names`, without repeated columns, which order nothing."""
    place = {name: position for position, name in enumerate(names)}
    found: dict[int, bool] = {}
    for item in items:
        found.setdefault(place[item.name], item.direction == "asc")
    return list(found.items())


def named(items: Iterable[SignedColumn], names: Sequence[str]) -> tuple[OrderedColumn, ...]:
    """A list with the names of its columns, as `read_od` reads it."""
    return tuple(OrderedColumn(names[column], "asc" if ascends else "desc") for column, ascends in items)


def pair_kind(left_ascends: bool, right_ascends: bool) -> int:
    """ASCENDING for two columns of the same direction, else DESCENDING."""
    return ASCENDING if left_ascends == right_ascends else DESCENDING


def ordered_pair(context: frozenset[int], left: SignedColumn, right: SignedColumn) -> SetOd | None:
    """The dependency that forbids rows that are equal on the context to be before on `left` and after on `right`. None
    if that is impossible: one of the columns is in the context, or both are the same.

    A column and its own opposite direction require it to be constant.
    """
    (a, a_ascends), (b, b_ascends) = left, right
    if a in context or b in context or left == right:
        return None
    if a == b:
        return SetOd(context, CONSTANT, a, -1)
    return SetOd(context, pair_kind(a_ascends, b_ascends), min(a, b), max(a, b))


def set_based(left: Sequence[SignedColumn], right: Sequence[SignedColumn]) -> list[SetOd]:
    """The set-based dependencies that together are equivalent to `left -> right`, without trivial or repeated ones.

    Parameters
    ----------
    left, right : lists without repeated columns, as `signed` makes them

    Notes
    -----
    `X -> Y` holds iff (a) rows equal on X are equal on Y: `set(X): [] -> Yj` for each j; and (b) no two rows are before
    on X and behind on Y. Let i and j be the first places where two such rows differ. They are equal on X1..Xi-1 and on
    Y1..Yj-1, and Xi and Yj order them in opposite ways, which is what `{X1..Xi-1, Y1..Yj-1}: Xi ~ Yj` forbids. So two
    rows that break a dependency of (a) are a split of `X -> Y`, and two that break one of (b) a swap.

    At most |Y| + |X| |Y| dependencies.

    Examples
    --------
    `month -> week`, and the example `AB -> CD` of the HyOD paper, without the constancies:

    >>> set_based([(0, True)], [(1, True)])
    [SetOd(context=frozenset({0}), kind=1, left=1, right=-1), SetOd(context=frozenset(), kind=2, left=0, right=1)]
    >>> [(sorted(s.context), s.left, s.right) for s in set_based([(0, True), (1, True)], [(2, True), (3, True)])[2:]]
    [([], 0, 2), ([2], 0, 3), ([0], 1, 2), ([0, 2], 1, 3)]
    """
    return list(dict.fromkeys(each_part(left, right)))


def each_part(left: Sequence[SignedColumn], right: Sequence[SignedColumn]) -> Iterator[SetOd]:
    """See `set_based`; yields one by one, perhaps repeatedly."""
    everything = frozenset(a for a, _ in left)
    yield from (SetOd(everything, CONSTANT, b, -1) for b, _ in right if b not in everything)
    for i, x in enumerate(left):
        front = frozenset(a for a, _ in left[:i])
        for j, y in enumerate(right):
            pair = ordered_pair(front.union(b for b, _ in right[:j]), x, y)
            if pair is not None:
                yield pair


def arrays_of(
    parts: Sequence[SetOd],
) -> tuple[list[frozenset[int]], NDArray[np.int32], NDArray[np.int8], NDArray[np.int32], NDArray[np.int32]]:
    """The distinct contexts; and of each dependency the number of its context, its kind, left and right."""
    numbers = {context: number for number, context in enumerate(dict.fromkeys(p.context for p in parts))}
    which, kind, left, right = np.array([(numbers[p.context], *p[1:]) for p in parts], dtype=np.int32).T.copy()
    return list(numbers), which, kind.astype(np.int8), left, right


def check_orders(
    relation: Relation,
    ods: Sequence[ListOd],
    *,
    device: Device | str = "auto",
    run: Run | None = None,
) -> list[OdCheck]:
    """Check list order dependencies on a table; null is the lowest value and equal to itself.

    Parameters
    ----------
    ods : as `read_od` reads them, over the relation's columns
    device : "auto", "cpu", "cuda" or "cuda:N"
    run : reports "checking"; dependencies undecided at its time limit have `holds` None

    Raises
    ------
    DeviceError
        If the requested device is not available.
    InputError
        For columns that the relation lacks, with similar names.

    Notes
    -----
    Cost: a pass over the rows for each set-based dependency and context (`set_based` has their number). Classes of
    contexts that dependencies share are built once.
    """
    for od in ods:
        for item in (*od.left, *od.right):
            relation.index_of(item.name)
    run = run or Run()
    report = run.stage("checking")
    rows = lay_out_orders(relation.codes, device=device)
    checks = []
    for done, od in enumerate(ods, start=1):
        began = time.monotonic()
        holds, violation = _check(relation, rows, od, run)
        checks.append(OdCheck(od, holds, violation, time.monotonic() - began))
        if report is not None:
            report(done / len(ods))
    return checks


def _check(relation: Relation, rows: PartitionedRows, od: ListOd, run: Run) -> tuple[bool | None, OdViolation | None]:
    """The verdict on one dependency."""
    left, right = (signed(side, relation.column_names) for side in (od.left, od.right))
    wanted = set_based(left, right)
    if not wanted:
        return True, None
    if run.over():
        return None, None
    contexts, which, kind, lefts, rights = arrays_of(wanted)
    words = mask_words(len(relation.columns))
    masks = np.array([mask_of(sorted(context), words) for context in contexts])
    checked = rows.check(masks, which, kind, lefts, rights, limit=1, deadline=run.deadline)
    if not checked.complete:
        return None, None
    violated = np.flatnonzero(~checked.holds)
    if not len(violated):
        return True, None
    return False, violation_of(relation, left, checked.pairs[checked.first[violated[0]]])


def violation_of(relation: Relation, left: Sequence[SignedColumn], pair: NDArray[np.int32]) -> OdViolation:
    """Turn two rows that break a set-based dependency into a violation of the list one; see `set_based`."""
    t, u = sorted(pair.tolist())
    kind: Literal["split", "swap"] = "split"
    for column, ascends in left:
        difference = int(relation.codes[column, t]) - int(relation.codes[column, u])
        if difference:
            kind = "swap"
            t, u = (t, u) if (difference < 0) == ascends else (u, t)
            break
    return OdViolation(kind, relation.position_of(t), relation.position_of(u), (t, u))
