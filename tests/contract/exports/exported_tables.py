"""A table with odd names and values that keeps rules of each kind, and copies of it in which one of them is broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from contracts_for_exports import in_contradicting_pairs

import tuplewise as tw
from tuplewise.engine.contract.forms import OrderCompatibility

ROWS = 200
KIND = "class"
SIZE = "größe (m)"
PAY = "pay\n'`x\\"
STATES = ["it's", 'say "hi"', "back\\slash", "two\nlines", "'); raise SystemExit(1) #", "", "plain"]
TYPES = {
    "id": "integer", "order id": "integer", "line": "integer", "zip": "integer", "city": "text", KIND: "text",
    SIZE: "double", "begin": "date", "end": "date", PAY: "integer", "tax": "integer", "chief": "integer",
}  # fmt: skip


def quoted(text: str, quote: str) -> str:
    """A name or a text as rules have it."""
    from tuplewise.engine.table.schema import quote_text

    return quote_text(text, quote)


SIZED, PAID = quoted(SIZE, "`"), quoted(PAY, "`")
RULES: dict[str, tuple[str, str]] = {
    "id": ("key", "[id]"),
    "filled": ("not_null", "id is not null"),
    "order-line": ("key", "[`order id`, line]"),
    "city": ("fd", "zip -> city"),
    "tax": ("od", f"{PAID} ~ tax"),
    "tax-in-zip": ("od", f"[zip]: {PAID} ~ begin desc"),
    "dates": ("row", "begin <= `end`"),
    "kinds": ("values", f"{KIND} in ({', '.join(quoted(state, chr(39)) for state in STATES)})"),
    "sizes": ("range", f"{SIZED} between 0 and 9.5"),
    "days": ("range", "begin >= '2024-01-01'"),
    "plain": ("dc", f"not(t.{KIND} == 'plain' and t.{SIZED} > 5)"),
    "above": ("dc", "not(t.tax <= -1)"),
    "pairs": ("dc", "not(t.zip == u.zip and t.id < u.id and t.tax > u.tax)"),
    "chief": ("ind", "t.chief <= t.id"),
}


def clean() -> pd.DataFrame:
    """The table that keeps all of them."""
    rng = np.random.default_rng(5)
    number = np.arange(ROWS)
    zips = number // 10
    states = np.array(STATES, dtype=object)[rng.integers(0, len(STATES), ROWS)]
    sizes = np.round(rng.uniform(0, 5, ROWS), 2)
    sizes[:2] = 0, 9.5
    states[:2] = "it's"
    begin = pd.Timestamp("2024-12-31") - pd.to_timedelta(number, unit="D")
    return pd.DataFrame(
        {
            "id": number,
            "order id": number // 4,
            "line": number % 4,
            "zip": zips,
            "city": [None if n % 17 == 3 else f"city {z // 2}" for n, z in enumerate(zips)],
            KIND: [None if n % 23 == 4 else state for n, state in enumerate(states)],
            SIZE: [None if n % 19 == 5 else size for n, size in enumerate(sizes)],
            "begin": begin,
            "end": begin + pd.to_timedelta(rng.integers(0, 9, ROWS), unit="D"),
            PAY: number * 3,
            "tax": number // 2,
            "chief": pd.array([None if n % 7 == 0 else n // 7 for n in number], dtype="Int64"),
        }
    )


def _cell(column: str, row: int, value: Any) -> Callable[[pd.DataFrame], None]:
    def plant(frame: pd.DataFrame) -> None:
        frame.loc[row, column] = value

    return plant


def _null(frame: pd.DataFrame) -> None:
    frame["id"] = pd.array([None if n == 8 else n for n in frame["id"]], dtype="Int64")


PLANTED: dict[str, Callable[[pd.DataFrame], None]] = {
    "id": _cell("id", 9, 12),
    "filled": _null,
    "order-line": _cell("line", 9, 2),
    "city": _cell("city", 31, "elsewhere"),
    "tax": _cell("tax", 90, 3),
    "tax-in-zip": _cell("begin", 55, pd.Timestamp("2025-06-01")),
    "dates": _cell("end", 7, pd.Timestamp("2020-01-01")),
    "kinds": _cell(KIND, 77, "it''s"),
    "sizes": _cell(SIZE, 33, 9.51),
    "days": _cell("begin", 199, pd.Timestamp("2023-12-31")),
    "plain": lambda frame: (_cell(KIND, 60, "plain")(frame), _cell(SIZE, 60, 5.5)(frame))[0],
    "above": _cell("tax", 0, -1),
    "pairs": _cell("tax", 125, 1),
    "chief": _cell("chief", 64, 900),
}


def broken(rule_id: str) -> pd.DataFrame:
    """The table with cells that break one rule, and perhaps others."""
    frame = clean()
    PLANTED[rule_id](frame)
    return frame


def contract(folder: Path, rules: Sequence[str] = tuple(RULES), nulls: str = "unknown", **more: dict[str, Any]) -> Path:
    """The file of a contract with some of the rules, and more to say of each."""
    columns = {name: {"type": type_} for name, type_ in TYPES.items()}
    entries = [
        {"id": rule_id, "kind": RULES[rule_id][0], "rule": RULES[rule_id][1], **more.get(rule_id.replace("-", "_"), {})}
        for rule_id in rules
    ]
    for entry in entries:
        if entry["kind"] != "ind":
            entry["table"] = "t"
    path = folder / "rules.yaml"
    document = {"tuplewise_contract": 1, "nulls": nulls, "tables": {"t": {"columns": columns}}, "rules": entries}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def in_polars(frame: pd.DataFrame) -> pl.DataFrame:
    """The table with dates that are none of pandas's instants."""
    return pl.from_pandas(frame).with_columns(pl.col("begin").cast(pl.Date), pl.col("end").cast(pl.Date))


def listed(frame: pd.DataFrame, path: Path) -> dict[str, set[int]]:
    """The rows that our check lists of each broken rule: of keys and FDs without their partners."""
    found = tw.check_contract(in_polars(frame), path, examples=1000)
    rows: dict[str, set[int]] = {}
    kept = found.checked.contract
    for rule, form in zip(found.rules, (one.form for one in kept.accepted()), strict=True):
        examples = [example["rows"] for example in rule["examples"]]
        first = rule["kind"] in ("key", "fd")
        if rule["exceptions"]:
            rows[rule["id"]] = {row for one in examples for row in (one[:1] if first else one)}
        if rule["exceptions"] and isinstance(form, OrderCompatibility):
            rows[rule["id"]] = set(in_contradicting_pairs(in_polars(frame), form, kept.nulls))
    return rows
