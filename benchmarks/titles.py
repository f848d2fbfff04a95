"""Made-up films and their casts: tables of titles and of roles in them, with the ties that such tables have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.generators import CITY_HEADS, CITY_TAILS, FAMILY_HEADS, FAMILY_TAILS, MEN, WOMEN

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("movie", "tv series", "tv movie", "video movie", "tv mini series", "video game", "episode")
KIND_SHARES = (0.3, 0.04, 0.06, 0.07, 0.01, 0.01, 0.51)
ROLES = "actor actress producer writer cinematographer composer designer director editor guest crew".split()
MOODS = (
    "Amber Bitter Blue Broken Burning Cold Crimson Dark Distant Empty Endless Fading Final First Forgotten Frozen"
    " Gentle Golden Hidden Hollow Iron Last Little Lonely Long Lost Lucky Midnight Naked Open Perfect Quiet Restless"
    " Running Scarlet Secret Silent Sleeping Stolen Wild"
).split()
THINGS = (
    "Afternoon Army Bridge Captain Child City Crossing Dance Daughter Day Dream Empire Garden Ghost Harbour Heart"
    " Highway Hotel House Island Journey Kingdom Letter Machine Mirror Mountain Night Ocean Orchard Promise Road"
    " Season Shadow Soldier Song Stranger Summer Train Voyage Winter"
).split()
POPULAR_SHARE = 0.2  # of titles that many works have
DUPLICATE_SHARE = 0.005


def titles(rows: int, *, seed: int) -> pa.Table:
    """One row for each title: title (text), production_year (int64), kind (text).

    Some titles were used again, in another year, or in the same year for a work of the same or of another kind.
    The same seed and rows give the same table.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    title, year, kind = _works(rng, rows)
    return pa.table({"title": _title_text(title), "production_year": pa.array(year), "kind": _named(kind, KINDS)})


def castings(rows: int, *, seed: int) -> pa.Table:
    """One row for each role of a person in a work; DUPLICATE_SHARE of the rows are there twice or more.

    Returns
    -------
    pyarrow.Table
        title (text), production_year (int64), kind, name, char_name, role (text)
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    works = max(1, rows // 8)
    title, year, kind = _works(rng, works)
    work = np.minimum(rng.geometric(8 / max(8, works), rows), works) - 1
    columns = {
        "work": work,
        "person": np.minimum(rng.pareto(1.2, rows) * max(1, rows // 40), max(0, rows // 3)).astype(np.int64),
        "character": np.minimum(rng.pareto(0.9, rows) * 40, max(0, rows // 2)).astype(np.int64),
        "role": rng.choice(len(ROLES), rows, p=_falling(len(ROLES))),
    }
    again = np.flatnonzero(rng.random(rows) < DUPLICATE_SHARE)
    source = rng.integers(0, max(1, rows), len(again))
    for values in columns.values():
        values[again] = values[source]
    work = columns["work"]
    return pa.table(
        {
            "title": _title_text(title[work]),
            "production_year": pa.array(year[work]),
            "kind": _named(kind[work], KINDS),
            "name": _numbered(columns["person"], [f"{h}{t}, {g}" for h, t, g in _people()]),
            "char_name": _numbered(columns["character"], [*WOMEN, *MEN, "Narrator", "Police Officer", "Waiter"]),
            "role": _named(columns["role"], ROLES),
        }
    )


def _works(rng: np.random.Generator, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number of the title, year, number of the kind."""
    numbers = len(MOODS) * len(THINGS) * len(CITY_HEADS) * len(CITY_TAILS)
    popular = np.minimum(rng.pareto(0.8, rows) * numbers / 200, numbers - 1).astype(np.int64)
    title = np.where(rng.random(rows) < POPULAR_SHARE, popular, rng.integers(0, numbers, rows))
    year = 2024 - np.minimum(rng.exponential(18, rows), 130).astype(np.int64)
    return title, year, rng.choice(len(KINDS), rows, p=KIND_SHARES)


def _falling(count: int) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = 1.0 / np.arange(1, count + 1)
    return np.asarray(shares / shares.sum())


def _people() -> list[tuple[str, str, str]]:
    return [(head, tail, given) for head in FAMILY_HEADS for tail in FAMILY_TAILS for given in (WOMEN + MEN)[::4]]


def _named(values: NDArray[np.int64], names: tuple[str, ...] | list[str]) -> pa.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), pa.array(list(names))).cast(pa.string())


def _numbered(values: NDArray[np.int64], names: list[str]) -> pa.Array:
    """The names in turn; from the second round on with a number behind."""
    distinct, place = np.unique(values, return_inverse=True)
    texts = [names[v % len(names)] + (f" {v // len(names) + 1}" if v >= len(names) else "") for v in distinct.tolist()]
    return _named(place, texts)


def _title_text(values: NDArray[np.int64]) -> pa.Array:
    """ "Silent Bridge of Ashford" and the like."""
    distinct, place = np.unique(values, return_inverse=True)
    texts = []
    for value in distinct.tolist():
        rest, mood = divmod(value, len(MOODS))
        rest, thing = divmod(rest, len(THINGS))
        tail, head = divmod(rest, len(CITY_HEADS))
        texts.append(f"{MOODS[mood]} {THINGS[thing]} of {CITY_HEADS[head]}{CITY_TAILS[tail]}")
    return _named(place, texts)
