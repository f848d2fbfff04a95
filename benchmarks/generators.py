"""Seeded tables: Tax, the synthetic table of the papers on denial constraints, letters, and coded ones for kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

STATES = (
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA"
    " RI SC SD TN TX UT VT VA WA WV WI WY"
).split()
WOMEN = (
    "Ada Alice Amara Anna Beatriz Carla Chiara Dana Elena Emma Fatima Grace Hana Ida Ines Jana Kaya Lena Lucy Maria"
    " Mei Mina Nadia Nora Olga Paula Rosa Ruth Sara Sofia Tara Uma Vera Wanda Yara Zoe"
).split()
MEN = (
    "Adam Ali Andre Ben Boris Carl Chen David Diego Emil Erik Felix Finn George Hugo Ivan Jack Jonas Karim Leo Liam"
    " Marc Milan Nils Noah Omar Oscar Paul Peter Raj Rafael Sven Theo Tom Victor Yusuf"
).split()
FAMILY_HEADS = (
    "Ander Berg Brad Carl Dal Edmund Fern Gold Hart Isak Jans King Lind Mart Nor Oster Pet Rich Sand Wat".split()
)
FAMILY_TAILS = "berg dale er field ford land ley man mann ner quist son stein ton wood".split()
CITY_HEADS = (
    "Ash Bay Bell Birch Bright Cedar Clay Clear Crest Deer East Elm Fair Fox Glen Green Hazel High Iron Lake Long Maple"
    " Mill Moss North Oak Pine Red Ridge River Rock Rose Sage Salt Silver South Spring Stone West White Wil Win"
).split()
CITY_TAILS = (
    "boro bridge brook burg bury creek dale fall field ford gate grove ham haven hill land mont mouth point port side"
    " stead ton town vale view ville water wood worth"
).split()

AREAS_PER_STATE = 6
BRACKETS = 8
PHONES = 8_000_000  # seven digits, the first at least 2
LETTER_VALUES, LETTER_MEASURES, LETTER_DISTORTIONS = 16, 16, 3
FAULTS = ("city", "state", "rate", "single_exemp", "child_exemp", "phone")


def tax(rows: int, *, seed: int, error_share: float = 0.0) -> pa.Table:
    """The Tax table: people with addresses, incomes and exemptions.

    Without errors these rules hold: `zip -> city, state`; `area_code -> state`; `area_code, phone` is a key; within a
    state the rate never falls as the salary rises; `state, marital_status -> single_exemp, married_exemp`;
    `state, has_child -> child_exemp`; `fname -> gender`.

    Parameters
    ----------
    rows : number of rows, up to 1e8
    seed : the same seed and rows give the same table
    error_share : share of rows, 0 to 1, in which one cell is replaced by a wrong one (columns of FAULTS in turn)

    Returns
    -------
    pyarrow.Table
        15 columns in the order of the papers: fname, lname, gender, area_code, phone, city, state, zip,
        marital_status, has_child, salary, rate, single_exemp, married_exemp, child_exemp.

    Notes
    -----
    Vectorised; about 150 bytes a row. The number of postal codes grows with the rows (one for 8, 60 to 30,000), so that
    small tables too have people who share one. The form follows the description of Bohannon, Fan, Geerts, Jia and
    Kementsietzidis, "Conditional Functional Dependencies for Data Cleaning", ICDE 2007; all values are made up.

    Examples
    --------
    >>> table = tax(100, seed=1)
    >>> table.num_rows, table.num_columns, table.column_names[:3]
    (100, 15, ['fname', 'lname', 'gender'])
    """
    return _as_table(tax_numbers(rows, seed=seed, error_share=error_share))


def tax_numbers(rows: int, *, seed: int, error_share: float = 0.0) -> dict[str, NDArray[Any]]:
    """The columns of `tax`, made without pyarrow, with a number in place of each name, and phones without a dash."""
    if rows < 0 or not 0 <= error_share <= 1:
        raise ValueError(f"rows {rows!r} must be 0 or more, error_share {error_share!r} from 0 to 1")
    rng = np.random.default_rng(seed)
    columns = {**_addresses(rng, rows), **_people(rng, rows)}
    columns |= _taxes(rng, columns)
    if error_share:
        _break_cells(rng, columns, round(rows * error_share))
    return columns


def _addresses(rng: np.random.Generator, rows: int) -> dict[str, NDArray[Any]]:
    """zip, city (number of the name), state (number), area_code, phone (number without its area)."""
    zips = int(np.clip(rows // 8, 60, 30_000))
    cities = max(20, zips // 5)
    state_of_city = rng.integers(0, len(STATES), cities)
    city_of_zip = rng.integers(0, cities, zips)
    code_of_zip = np.sort(rng.choice(np.arange(10_000, 100_000), zips, replace=False))
    popularity = 1.0 / np.arange(1, zips + 1) ** 0.6
    zip_index = rng.choice(zips, rows, p=rng.permutation(popularity / popularity.sum()))
    city = city_of_zip[zip_index]
    state = state_of_city[city]
    first_area = rng.permutation(np.arange(200, 200 + len(STATES) * AREAS_PER_STATE))
    area = first_area[state * AREAS_PER_STATE + rng.integers(0, AREAS_PER_STATE, rows)]
    name_of_city = rng.permutation(len(CITY_HEADS) * len(CITY_TAILS))
    return {
        "area_code": area,
        # For each area a permutation: 1,234,577 and PHONES have no common factor.
        "phone": (_rank_within(area) + area * 7_919) * 1_234_577 % PHONES + 2_000_000,
        "city": name_of_city[city % len(name_of_city)],
        "state": state,
        "zip": code_of_zip[zip_index],
    }


def _rank_within(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many earlier rows have the same value. int64 (rows,)."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(groups) else np.zeros(0, np.int64)
    rank = np.empty(len(groups), np.int64)
    rank[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))
    return rank


def _people(rng: np.random.Generator, rows: int) -> dict[str, NDArray[Any]]:
    """fname, lname (numbers of names), gender, marital_status, has_child (0 or 1), salary."""
    fname = rng.integers(0, len(WOMEN) + len(MEN), rows)
    lognormal = rng.lognormal(mean=10.8, sigma=0.6, size=rows)
    return {
        "fname": fname,
        "lname": rng.integers(0, len(FAMILY_HEADS) * len(FAMILY_TAILS), rows),
        "gender": (fname >= len(WOMEN)).astype(np.int64),
        "marital_status": (rng.random(rows) < 0.55).astype(np.int64),
        "has_child": (rng.random(rows) < 0.45).astype(np.int64),
        "salary": np.clip((lognormal / 50).round() * 50, 5_000, 500_000).astype(np.int64),
    }


def _taxes(rng: np.random.Generator, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """rate and the exemptions, from each state's own brackets and amounts."""
    state = columns["state"]
    bounds = np.sort(rng.integers(100, 3_000, (len(STATES), BRACKETS - 1)) * 50, axis=1)
    bracket = (columns["salary"][:, None] >= bounds[state]).sum(axis=1)
    hundredths = np.cumsum(rng.integers(5, 140, (len(STATES), BRACKETS)), axis=1)
    hundredths[rng.choice(len(STATES), 7, replace=False)] = 0  # states without income tax
    amounts = rng.integers(0, 80, (3, len(STATES))) * 50
    single, child = columns["marital_status"] == 0, columns["has_child"] == 1
    return {
        "rate": hundredths[state, bracket] / 100,
        "single_exemp": np.where(single, amounts[0, state], 0),
        "married_exemp": np.where(single, 0, amounts[1, state]),
        "child_exemp": np.where(child, amounts[2, state], 0),
    }


def _break_cells(rng: np.random.Generator, columns: dict[str, NDArray[Any]], errors: int) -> None:
    """Replace one cell in each of `errors` rows, the columns of FAULTS in turn, by a value that it didn't have."""
    rows = rng.choice(len(columns["state"]), errors, replace=False)
    for i, name in enumerate(FAULTS):
        hit = rows[i :: len(FAULTS)]
        old = columns[name][hit]
        if name == "city":
            names = len(CITY_HEADS) * len(CITY_TAILS)
            new = (old + rng.integers(1, names, len(hit))) % names
        elif name == "state":
            new = (old + rng.integers(1, len(STATES), len(hit))) % len(STATES)
        elif name == "rate":
            new = np.where(rng.random(len(hit)) < 0.5, old + 12, old / 2 + 0.01).round(2)
        elif name == "phone":
            new = _number_of_another(columns["area_code"], columns["phone"], hit)
        else:
            new = old + rng.integers(1, 20, len(hit)) * 10
        columns[name][hit] = new


def _number_of_another(area: NDArray[Any], phone: NDArray[Any], hit: NDArray[Any]) -> NDArray[np.int64]:
    """For each row of `hit` the phone number of a neighbour in its area; the number after its own if it has none."""
    order = np.argsort(area, kind="stable")
    place = np.empty(len(area), np.int64)
    place[order] = np.arange(len(area))
    after, before = (order[(place[hit] + step) % len(area)] for step in (1, -1))
    beside = np.where(area[after] == area[hit], after, before)
    alone = (area[beside] != area[hit]) | (beside == hit)
    new: NDArray[np.int64] = np.where(alone, phone[hit] + 1, phone[beside])
    return new


def _as_table(columns: dict[str, NDArray[Any]]) -> pa.Table:
    """Numbers of names replaced by the names."""
    import pyarrow as pa

    def named(name: str, values: list[str]) -> pa.Array:
        indices = pa.array(columns[name].astype(np.int32))
        return pa.DictionaryArray.from_arrays(indices, pa.array(values)).cast(pa.string())

    joined = {
        "fname": named("fname", WOMEN + MEN),
        "lname": named("lname", [h + t for h in FAMILY_HEADS for t in FAMILY_TAILS]),
        "gender": named("gender", ["F", "M"]),
        "area_code": pa.array(columns["area_code"]),
        "phone": _with_dash(pa.array(columns["phone"]).cast(pa.string())),
        "city": named("city", [h + t for h in CITY_HEADS for t in CITY_TAILS]),
        "state": named("state", STATES),
        "zip": pa.array(columns["zip"]),
        "marital_status": named("marital_status", ["S", "M"]),
        "has_child": named("has_child", ["N", "Y"]),
    }
    numbers = ("salary", "rate", "single_exemp", "married_exemp", "child_exemp")
    return pa.table(joined | {name: pa.array(columns[name]) for name in numbers})


def _with_dash(phones: pa.Array) -> pa.Array:
    """2000001 as 200-0001."""
    import pyarrow.compute as pc

    return pc.utf8_replace_slice(phones, start=3, stop=3, replacement="-")


def constant_left(rows: int) -> pa.Table:
    """The worst table for the rule `site -> serial`: one site (text), and serial (int64) different in each row."""
    import pyarrow as pa

    site = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["here"])).cast(pa.string())
    return pa.table({"site": site, "serial": pa.array(np.arange(rows, dtype=np.int64) * 7_919 % 1_000_003)})


def letters(rows: int, *, seed: int) -> pa.Table:
    """A table of the shape of UCI's Letter Recognition: 17 dependent columns (int64) of the values 0 to 15.

    `glyph` is drawn at random. `m0` to `m15` measure it: each is its glyph's own value, moved by three distortions that
    all measures share and by noise of its own, rounded.

    Examples
    --------
    >>> table = letters(100, seed=1)
    >>> table.num_rows, table.column_names[:3]
    (100, ['glyph', 'm0', 'm1'])
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    glyph = rng.integers(0, LETTER_VALUES, rows)
    of_glyph = (LETTER_VALUES / 2) + 2.0 * rng.standard_normal((LETTER_VALUES, LETTER_MEASURES))
    distortions = rng.standard_normal((rows, LETTER_DISTORTIONS))
    effect = 0.75 * rng.standard_normal((LETTER_DISTORTIONS, LETTER_MEASURES))
    noise = 0.3 * rng.standard_normal((rows, LETTER_MEASURES))
    measured = np.rint(of_glyph[glyph] + distortions @ effect + noise).clip(0, LETTER_VALUES - 1).astype(np.int64)
    columns = {"glyph": glyph} | {f"m{i}": measured[:, i] for i in range(LETTER_MEASURES)}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a CSV with a header; nothing in these tables needs quotes."""
    from pyarrow import csv

    csv.write_csv(table, path, csv.WriteOptions(quoting_style="none", quoting_header="none"))


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write one Parquet file."""
    from pyarrow import parquet

    parquet.write_table(table, path)


def clues_reached(wanted: int) -> int:
    """Number of distinct clues that `table_with_clues` gives: the least m (m - 1) + 1 that is at least `wanted`.

    Examples
    --------
    >>> clues_reached(100), clues_reached(7)
    (111, 7)
    """
    kinds = kinds_needed(wanted)
    return kinds * (kinds - 1) + 1


def kinds_needed(wanted: int) -> int:
    """Least number of kinds of rows, 2 or more, whose pairs can have `wanted` distinct clues."""
    kinds = 2
    while kinds * (kinds - 1) + 1 < wanted:
        kinds += 1
    return kinds


def table_with_clues(rows: int, clues: int, *, seed: int, columns: int = 16) -> NDArray[np.int32]:
    """A coded table, all columns ordered, with exactly `clues_reached(clues)` distinct clues over ordered pairs.

    Parameters
    ----------
    rows : at least twice `kinds_needed(clues)`
    clues : wanted number of distinct clues, same-column comparisons only
    seed : the same arguments give the same table
    columns : width; must leave room, 3 ** columns well above 100 * clues

    Returns
    -------
    int32 (columns, rows), C order, values 0 to 2

    Notes
    -----
    m kinds of rows are drawn so that each pair of kinds has a clue of its own: m (m - 1) clues, and the clue of equal
    rows, since each kind occurs at least twice. Kinds occur with unlike frequency, rows are shuffled.
    """
    kinds = kinds_needed(clues)
    if rows < 2 * kinds:
        raise ValueError(f"rows {rows!r} must be at least {2 * kinds} for {clues!r} clues")
    if 3**columns < 100 * clues:
        raise ValueError(f"columns {columns!r} are too few for {clues!r} clues")
    rng = np.random.default_rng(seed)
    kind_values = _kinds_with_clues_of_their_own(rng, kinds, columns)
    popularity = 1.0 / np.arange(1, kinds + 1)
    rest = rng.choice(kinds, rows - 2 * kinds, p=popularity / popularity.sum())
    kind_of_row = rng.permutation(np.concatenate([np.repeat(np.arange(kinds), 2), rest]))
    return np.ascontiguousarray(kind_values[kind_of_row].T.astype(np.int32))


def _kinds_with_clues_of_their_own(rng: np.random.Generator, kinds: int, columns: int) -> NDArray[np.int64]:
    """int64 (kinds, columns): rows of which no two pairs compare alike in all columns."""
    weights = 3 ** np.arange(columns, dtype=np.int64)
    found = np.zeros((0, columns), np.int64)
    seen: set[int] = {0}  # the clue of equal rows
    while len(found) < kinds:
        candidate = rng.integers(0, 3, columns)
        forward = np.sign(candidate - found) @ weights
        new = set(forward.tolist()) | set((-forward).tolist())
        if len(new) == 2 * len(found) and not new & seen:
            seen |= new
            found = np.vstack([found, candidate])
    return found
