"""What `profile` returns, written by hand: small, typical, hostile, empty, partial and wide."""

from __future__ import annotations

import math
from typing import Any

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(2)'>",
    "a\x00b\r\n\tc\x1b[31m",
    "\u202egnirts\u202c עברית",
    "x" * 3000,
    "{{ 7 * 7 }} {% raw %} ' ` $(rm) & &amp;",
    "</script><!--\u2028",
    "half \ud800",
)


def column(name: str, type: str = "text", distinct: int = 3, nulls: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": type,
        "why": f"every value reads as {type}",
        "distinct": distinct,
        "nulls": nulls,
        **more,
    }


def rule(kind: str, text: str, **more: Any) -> dict[str, Any]:
    made = {
        "rank": 1,
        "table": "tax",
        "kind": kind,
        "rule": text,
        "english": f"{text} in words",
        "rows": 10_000,
        "exceptions": 0,
        "evidence": 9000.0,
        "strength": 1.0,
        "score": 0.9,
        "implies": [],
        "equivalent": [],
        "examples": [],
        "dc": None,
        "sql": None,
    }
    return {**made, **more}


def key(*names: str, **more: Any) -> dict[str, Any]:
    equal = " and ".join(f"t.{name} == u.{name}" for name in names)
    listed = " and ".join(f"`{name}`" for name in names)
    said = f"no two rows are equal on {listed}"
    group = ", ".join(names)
    sql = f"SELECT {group}, count(*)\nFROM tax\nGROUP BY {group}\nHAVING count(*) > 1;"
    return rule(
        "key", f"[{group}]", **{"english": said, "columns": list(names), "dc": f"not({equal})", "sql": sql, **more}
    )


def fd(left: str, right: str, **more: Any) -> dict[str, Any]:
    exceptions = more.get("exceptions", 0)
    differ = f"; {exceptions:,} of 10,000 rows differ" if exceptions else ""
    own = {
        "english": f"each `{left}` has one `{right}`{differ}",
        "determinant": [left],
        "dependent": right,
        "dc": f"not(t.{left} == u.{left} and t.{right} != u.{right})",
        "sql": f"SELECT {left}\nFROM tax\nGROUP BY {left}\nHAVING count(DISTINCT {right}) > 1;",
    }
    return rule("fd", f"{left} -> {right}", **{**own, **more})


def ind(left: str, right: str, score: float, **more: Any) -> dict[str, Any]:
    said = f"every value of `{left}` is a value of `{right}`"
    own = {"english": said, "dependent": left, "referenced": right, "score": score, "table": left.split(".")[0]}
    return rule("ind", f"{left} <= {right}", **{**own, **more})


def document(
    tables: list[dict[str, Any]], rules: list[dict[str, Any]], *, warnings: Any = (), held_back: int = 0, **more: Any
) -> dict[str, Any]:
    """The document of some tables, whose columns may have a "distribution", and rules in order."""
    columns = [{"distribution": None, **c, "table": table["name"]} for table in tables for c in table["columns"]]
    bare = [
        {**t, "columns": [{k: v for k, v in c.items() if k != "distribution"} for c in t["columns"]]} for t in tables
    ]
    return {
        "schema": "tuplewise/1",
        "command": "profile",
        "version": "0.1.0",
        "tables": bare,
        "options": {"limit": 25, "max_columns": 3, "nulls": "unknown", "columns": None, "types": {"zip": "text"}},
        "device": "cpu",
        "device_reason": "no CUDA device",
        "timings_seconds": {"load": 0.11, "search": 1.52, "measure": 0.41, "total": 2.04},
        "partial": False,
        "notes": [],
        "result": {
            "rules": [{**one, "rank": rank} for rank, one in enumerate(rules, 1)],
            "shown": len(rules),
            "held_back": held_back,
            "columns": columns,
            "warnings": list(warnings),
        },
        **more,
    }


def histogram(low: str, high: str, peak: float, bars: int = 24) -> dict[str, Any]:
    counts = [round(900 * math.exp(-(((i / bars - peak) * 4) ** 2))) for i in range(bars)]
    return {"kind": "histogram", "low": low, "high": high, "counts": counts}


def small() -> dict[str, Any]:
    columns = [column("id", "integer", 4, distribution=histogram("1", "4", 0.5, 4)), column("city", distinct=2)]
    return document([{"name": "tax", "path": None, "rows": 4, "columns": columns}], [key("id"), fd("zip", "city")])


TAX = [
    column("id", "integer", 10_000, distribution=histogram("1", "10000", 0.5)),
    column(
        "fname",
        distinct=1201,
        nulls=12,
        distribution={
            "kind": "values",
            "values": [["Mary", 410], ["John", 380], ["Linda", 300], ["James", 250], ["Ann", 200], ["Li", 180]],
            "other": 8268,
        },
    ),
    column("gender", distinct=2, distribution={"kind": "values", "values": [["F", 5210], ["M", 4790]], "other": 0}),
    column("phone", distinct=10_000),
    column("zip", distinct=812, why="007 and 0123 would lose a zero as numbers"),
    column(
        "city",
        distinct=640,
        nulls=3,
        distribution={
            "kind": "values",
            "values": [["New York", 900], ["Los Angeles", 500], ["Chicago", 300]],
            "other": 8297,
        },
    ),
    column(
        "state",
        distinct=51,
        distribution={
            "kind": "values",
            "values": [["CA", 1210], ["TX", 904], ["NY", 850], ["FL", 700], ["OH", 420], ["PA", 410]],
            "other": 5506,
        },
    ),
    column("marital", distinct=2, distribution={"kind": "values", "values": [["S", 6000], ["M", 4000]], "other": 0}),
    column(
        "has_child",
        "boolean",
        2,
        distribution={"kind": "values", "values": [["false", 7000], ["true", 3000]], "other": 0},
    ),
    column("salary", "integer", 4120, distribution=histogram("5,000", "99,500", 0.3)),
    column("rate", "decimal", 93, distribution=histogram("0", "9.30", 0.6)),
    column("single_exemp", "integer", 40, distribution=histogram("0", "24000", 0.1)),
    column("opened", "date", 900, distribution=histogram("2015-01-01", "2024-12-31", 0.9)),
    column("closed", "date", 700, nulls=4100, distribution=histogram("2016-03-01", "2024-12-31", 0.8)),
    column("country", distinct=1, distribution={"kind": "values", "values": [["US", 10_000]], "other": 0}),
]
STATES = [
    column("code", distinct=51),
    column("name", distinct=51),
    column(
        "region",
        distinct=4,
        distribution={
            "kind": "values",
            "values": [["South", 17], ["West", 13], ["Midwest", 12], ["Northeast", 9]],
            "other": 0,
        },
    ),
]
ZIPS = [
    column("zip", distinct=41_000),
    column("state", distinct=51),
    column("population", "integer", 20_000, distribution=histogram("0", "114,000", 0.05)),
]
WRONG_CITY = [
    {"text": "row 17: city is 'Sprngfield'; 12 of 13 rows with zip '01101' have 'Springfield'", "rows": [17]},
    {"text": "row 4,410: city is 'NYC'; 88 of 89 rows with zip '10001' have 'New York'", "rows": [4410]},
]


def typical() -> dict[str, Any]:
    """25 rules of all kinds, of three tables."""
    tables = [
        {"name": "tax", "path": "data/tax 2024.csv", "rows": 10_000, "columns": TAX},
        {"name": "states", "path": "data/states.csv", "rows": 51, "columns": STATES},
        {"name": "zips", "path": "data/zips.parquet", "rows": 41_000, "columns": ZIPS},
    ]
    order = {"context": ["state"], "left": "salary", "right": "rate", "direction": "ascending", "strength": 0.941}
    rules = [
        key("id", equivalent=[["id", "phone"]], evidence=49_995_000.0),
        fd(
            "zip",
            "city",
            exceptions=3,
            strength=0.99872,
            evidence=9188.2,
            examples=WRONG_CITY,
            implies=[f"zip, {c} -> city" for c in ("fname", "gender", "phone")],
        ),
        fd("zip", "state", implies=["zip, city -> state"]),
        rule(
            "od",
            "[state]: salary ~ rate",
            english="among rows of one `state`, `rate` rises with `salary`",
            evidence=2.1e6,
            **order,
        ),
        rule(
            "row",
            "opened <= closed",
            english="`opened` is never after `closed`; 41 of 5,900 rows differ",
            exceptions=41,
            strength=0.986,
            evidence=2870.0,
            left="opened",
            op="<=",
            right="closed",
            dc="not(t.opened > t.closed)",
            examples=[{"text": "row 8: opened is 2021-05-01, closed is 2020-05-01", "rows": [8]}],
        ),
        rule(
            "constant",
            "country",
            english="`country` is 'US' in every row",
            column="country",
            evidence=0.0,
            strength=1.0,
            dc="not(t.country != u.country)",
        ),
        ind("tax.state", "states.code", 0.97),
        ind("zips.state", "states.code", 0.93, exceptions=2, strength=0.99),
        ind("tax.zip", "zips.zip", 0.81, exceptions=120, strength=0.84),
        ind("tax.gender", "states.region", 0.21, strength=0.3),
        key("phone", exceptions=1, strength=0.9999, table="tax"),
        key("fname", "phone", "zip", evidence=12.0),
        key("zip", table="zips"),
        key("code", table="states", equivalent=[["code", "name"]]),
    ]
    names = (
        "marital",
        "has_child",
        "salary",
        "rate",
        "single_exemp",
        "opened",
        "gender",
        "fname",
        "closed",
        "id",
        "city",
    )
    rules += [
        fd("state", n, exceptions=i * 7, strength=1 - i / 20, evidence=5000.0 / (i + 1)) for i, n in enumerate(names)
    ]
    warnings = [
        {"table": "tax", "column": "country", "text": "has one value, 'US'"},
        {"table": "tax", "column": "closed", "text": "41 % of the rows are null"},
        {"table": "tax", "column": None, "text": "12 rows differ from another in one column only: near-duplicates"},
    ]
    notes = ["zip was read as text: 007 and 0123 would lose a zero as numbers"]
    return document(tables, rules, warnings=warnings, held_back=212, notes=notes)


def hostile() -> dict[str, Any]:
    """Names, values and texts that would be markup, or move things, if they were not spelled out."""
    columns = [column(n, distribution={"kind": "values", "values": [[n, 2]], "other": 1}) for n in HOSTILE]
    tables = [{"name": HOSTILE[0], "path": HOSTILE[1], "rows": 3, "columns": columns}]
    rules = [
        rule(
            "fd",
            n,
            table=HOSTILE[0],
            english=n,
            implies=[n],
            equivalent=[[n, n]],
            examples=[{"text": n, "rows": [1]}],
            exceptions=1,
            dc=n,
            sql=n,
        )
        for n in HOSTILE
    ]
    warnings = [{"table": HOSTILE[0], "column": n, "text": n} for n in HOSTILE]
    options = {HOSTILE[0]: HOSTILE[1], "types": {HOSTILE[0]: HOSTILE[1]}}
    return document(tables, rules, warnings=warnings, notes=list(HOSTILE), options=options)


def empty() -> dict[str, Any]:
    return document([{"name": "nothing", "path": "nothing.csv", "rows": 0, "columns": []}], [])


def partial() -> dict[str, Any]:
    return {**small(), "partial": True, "notes": ["the time limit came after 10 s"]}


def wide() -> dict[str, Any]:
    """50 columns, each with a distribution, and 30 rules with all that a rule can have."""
    columns = [
        column(f"column_{i}", "integer", i + 2, i, distribution=histogram("-12,345.67", "9,999,999", i / 50))
        for i in range(50)
    ]
    examples = [{"text": f"row {i}: column_1 is {i}; 12 of 13 rows have 5", "rows": [i]} for i in range(5)]
    rules = [
        fd(
            f"column_{i}",
            f"column_{i + 1}",
            exceptions=40,
            examples=examples,
            implies=[f"column_{i}, column_{j} -> column_9" for j in range(7)],
        )
        for i in range(30)
    ]
    return document([{"name": "wide", "path": "wide.csv", "rows": 100_000, "columns": columns}], rules, held_back=9)
