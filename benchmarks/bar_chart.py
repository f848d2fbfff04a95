"""Bar charts as SVG images, written without a library so that they are the same bytes everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

ROW, LEFT, WIDTH, RIGHT = 26, 400, 840, 60  # pixels: a bar's height with its gap, the labels, the image, the last text
BLUE, RED = "#1f5f8b", "#b5541c"


class Bar(NamedTuple):
    """A bar from `begin` to `end`, both from 0 (left) to 1, with a label before it and a text behind it."""

    label: str
    begin: float
    end: float
    text: str
    color: str = BLUE


class Tick(NamedTuple):
    """A line across the chart, with a text below it."""

    place: float
    text: str
    color: str = "#ddd"


def bar_chart(title: str, bars: Sequence[Bar], ticks: Sequence[Tick]) -> str:
    """An SVG image.

    Examples
    --------
    >>> chart = bar_chart("Times", [Bar("a < b", 0.0, 0.5, "2 s")], [Tick(0.0, "0 s")])
    >>> chart.count("<rect"), "a &lt; b" in chart
    (2, True)
    """
    bottom = 20 + ROW * len(bars)

    def x(place: float) -> float:
        return LEFT + place * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 30}" role="img"'
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{bottom + 30}" fill="#fff"/>',
    ]
    for tick in ticks:
        at = f"{x(tick.place):.1f}"
        parts.append(f'<line x1="{at}" x2="{at}" y1="12" y2="{bottom}" stroke="{tick.color}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle" fill="#555">{escape(tick.text)}</text>')
    for number, bar in enumerate(bars):
        y, width = 20 + ROW * number, x(bar.end) - x(bar.begin)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(bar.label)}</text>')
        parts.append(f'<rect x="{x(bar.begin):.1f}" y="{y}" width="{width:.1f}" height="16" fill="{bar.color}"/>')
        parts.append(f'<text x="{x(bar.end) + 5:.1f}" y="{y + 12}">{escape(bar.text)}</text>')
    return "\n".join([*parts, "</svg>", ""])
