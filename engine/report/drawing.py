"""Where the marks of small drawings lie: histograms, shares, and tables with the arrows of their foreign keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

WIDTH, HEIGHT = 120, 28
_BOX, _GAP, _ROW, _HEAD, _BETWEEN, _EDGE, _LANE = 190, 130, 22, 30, 26, 12, 14
_LONGEST = 24
SURE = 0.5
"""Foreign keys of a lower score are dashed."""

Relation = tuple[str, Sequence[str], str, Sequence[str], float]


def histogram(counts: Sequence[int]) -> str:
    """The path of a histogram, WIDTH by HEIGHT; what is not empty is at least one unit high."""
    most, wide = max([*counts, 1]), WIDTH / max(len(counts), 1)
    bars = []
    for i, count in enumerate(counts):
        high = max(1.0, HEIGHT * count / most) if count else 0.0
        if high:
            bars.append(f"M{_short(i * wide)} {HEIGHT}v-{_short(high)}h{_short(wide - 0.8)}v{_short(high)}z")
    return "".join(bars)


def strip(counts: Sequence[int]) -> list[tuple[str, str]]:
    """Start and width of the pieces of a strip that is WIDTH wide."""
    total = max(sum(counts), 1)
    ends = [0.0, *accumulate(WIDTH * count / total for count in counts)]
    return [(_short(a), _short(max(b - a - 0.8, 0.4))) for a, b in pairwise(ends)]


def _short(length: float) -> str:
    return f"{round(length, 1):g}"


@dataclass
class Box:
    """A table with the columns that arrows start or end at."""

    name: str
    columns: dict[str, None] = field(default_factory=dict)
    x: float = 0
    y: float = 0

    @property
    def height(self) -> float:
        return _HEAD + _ROW * len(self.columns) + 6

    def middle(self, column: str) -> float:
        """How far down the middle of a column's line is."""
        return self.y + _HEAD + _ROW * (list(self.columns).index(column) + 0.5)


@dataclass(frozen=True)
class Arrow:
    """A foreign key: the path of its line, and what it says."""

    path: str
    says: str
    sure: bool


@dataclass(frozen=True)
class Relations:
    """Tables side by side, each to the left of those that it refers to."""

    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    width: float
    height: float
    box: float = _BOX


def relations(given: Iterable[Relation]) -> Relations:
    """Tables as boxes, and an arrow from each foreign key to what it refers to."""
    found = [
        (table, ", ".join(columns), other, ", ".join(referenced), share)
        for table, columns, other, referenced, share in given
    ]
    boxes: dict[str, Box] = {}
    for table, columns, other, referenced, _ in found:
        boxes.setdefault(table, Box(table)).columns[columns] = None
        boxes.setdefault(other, Box(other)).columns[referenced] = None
    levels = _levels({(one[0], one[2]) for one in found}, boxes)
    lanes = {one: _EDGE + _LANE * i for i, one in enumerate(o for o in found if levels[o[2]] - levels[o[0]] > 1)}
    top = _EDGE + _LANE * len(lanes)
    bottoms: dict[int, float] = {}
    for name, box in boxes.items():
        box.x = levels[name] * (_BOX + _GAP) + 1
        box.y = bottoms.get(levels[name], top)
        bottoms[levels[name]] = box.y + box.height + _BETWEEN
    arrows = []
    for one in found:
        start, columns, end, referenced, score = one
        a, b = boxes[start], boxes[end]
        path = _line(a, a.middle(columns), b, b.middle(referenced), lanes.get(one))
        arrows.append(Arrow(path, _says(*one), score >= SURE))
    right = max((box.x for box in boxes.values()), default=0) + _BOX + _GAP / 2
    return Relations(list(boxes.values()), arrows, right, max(bottoms.values(), default=top) - _BETWEEN + _EDGE)


def shortened(name: str) -> str:
    """A name that fits into a box."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _levels(pairs: set[tuple[str, str]], names: Mapping[str, object]) -> dict[str, int]:
    """How far to the right each table stands: beyond all that refer to it, as far as there are no circles."""
    level = dict.fromkeys(names, 0)
    for _ in range(len(level)):
        moved = False
        for a, b in sorted(pairs):
            if a != b and level[b] <= level[a] < len(level) - 1 and (b, a) not in pairs:
                level[b], moved = level[a] + 1, True
        if not moved:
            break
    used = sorted(set(level.values()))
    return {name: used.index(found) for name, found in level.items()}


def _line(start: Box, y1: float, end: Box, y2: float, lane: float | None) -> str:
    """From the right side of one box to the left side of another, over those between them by a lane of its own.

    Where the other box is not ahead, round the right side to its right side.
    """
    x1, x2 = start.x + _BOX, end.x - 2
    if lane is not None:
        half, far = _GAP * 0.4, _GAP * 0.8
        there = f"C{x1 + half:g} {y1:g} {x1 + half:g} {lane:g} {x1 + far:g} {lane:g}"
        return f"M{x1:g} {y1:g}{there}H{x2 - far:g}C{x2 - half:g} {lane:g} {x2 - half:g} {y2:g} {x2:g} {y2:g}"
    if x2 > x1:
        bend = (x2 - x1) / 2
        return f"M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    x2 = end.x + _BOX
    far = max(x1, x2) + _GAP * 0.4
    return f"M{x1:g} {y1:g}C{far:g} {y1:g} {far:g} {y2:g} {x2 + 2:g} {y2:g}"


def _says(table: str, columns: str, other: str, referenced: str, score: float) -> str:
    return f"{table} ({columns}) → {other} ({referenced}), score {score:.2f}"
