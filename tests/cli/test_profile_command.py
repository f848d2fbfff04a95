"""`tuplewise profile`: what it prints in each format, with which exit code and message."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from cli_runs import Ran, inside

USAGE, LIMIT = 2, 3
NAMES = {"zip": "<b>zip</b>", "city": "[red]city[/red]"}


def people(count: int = 300) -> pd.DataFrame:
    """zip -> city with two wrong cells, two dates, once in the wrong order, an order rule, a key."""
    rng = np.random.default_rng(1)
    zips = rng.integers(0, 40, count)
    cities = [f"city {z // 2}" for z in zips]
    cities[5] = cities[60] = "elsewhere"
    begin = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, count), unit="D")
    end = begin + pd.to_timedelta(rng.integers(1, 90, count), unit="D")
    begin, end = begin.to_numpy().copy(), end.to_numpy().copy()
    begin[8], end[8] = end[8], begin[8]
    pay = rng.permutation(count) * 10
    tax = pay // 3
    tax[pay.argmin()] = 900
    number = np.arange(count)
    return pd.DataFrame(
        {"no": number, "zip": zips + 1000, "city": cities, "begin": begin, "end": end, "pay": pay, "tax": tax}
    )


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False)
    return str(path)


def profile(capsys: pytest.CaptureFixture[str], *argv: str) -> Ran:
    return inside(capsys, "profile", *argv, "--device", "cpu")


def document_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    ran = profile(capsys, *argv, "--format", "json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


SIDES = {
    "key": {"columns": list},
    "fd": {"determinant": list, "dependent": str},
    "od": {"context": list, "left": str, "right": str, "direction": str},
    "row": {"left": str, "op": str, "right": str},
    "constant": {"column": str},
    "ind": {"dependent": str, "referenced": str},
}
COMMON = {
    "rank": int, "table": str, "kind": str, "rule": str, "english": str, "rows": int, "exceptions": int,
    "evidence": float, "strength": float, "score": float, "implies": list, "equivalent": list, "examples": list,
}  # fmt: skip


def test_json(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, table)
    assert (document["schema"], document["command"]) == ("tuplewise/1", "profile")
    assert document["tables"][0]["name"] == "people"
    assert document["tables"][0]["rows"] == 300
    assert document["partial"] is False
    assert document["options"] | {"limit": 25, "max_context": 3, "nulls": "unknown", "seed": 0} == document["options"]
    assert document["timings_seconds"]["total"] > 0
    result = document["result"]
    rules = result["rules"]
    assert [rule["rank"] for rule in rules] == list(range(1, result["shown"] + 1))
    assert [rule["score"] for rule in rules] == sorted((rule["score"] for rule in rules), reverse=True)
    assert result["held_back"] >= 0
    for rule in rules:
        for name, type_ in (COMMON | SIDES[rule["kind"]]).items():
            assert isinstance(rule[name], type_ if type_ is not float else (int, float)), (rule["rule"], name)
        assert bool(rule["examples"]) == bool(rule["exceptions"])
        assert len(rule["examples"]) <= 5
    assert [column["name"] for column in result["columns"]] == list(people())
    for column in result["columns"]:
        assert {"type", "why", "nulls", "distinct", "distribution"} <= column.keys()


def test_what_is_found_and_which_rows_break_it(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    rules = {rule["rule"]: rule for rule in document_of(capsys, table)["result"]["rules"]}
    by_zip = rules["zip -> city"]
    assert (by_zip["determinant"], by_zip["dependent"], by_zip["exceptions"]) == (["zip"], "city", 2)
    assert by_zip["english"] == "each `zip` has one `city`; 2 of 300 rows differ"
    assert {one["rows"][0] for one in by_zip["examples"]} == {5, 60}
    assert re.fullmatch(
        r"row \d+: `city` is 'elsewhere'; \d+ of \d+ rows with `zip` \d+ have 'city \d+'", by_zip["examples"][0]["text"]
    )
    dates = rules["begin < end"]
    assert (dates["left"], dates["op"], dates["right"], dates["exceptions"]) == ("begin", "<", "end", 1)
    assert dates["english"] == "`begin` is always before `end`; 1 of 300 rows breaks it"
    assert [one["rows"] for one in dates["examples"]] == [[8]]
    order = rules["[]: pay ~ tax"]
    assert (order["context"], order["left"], order["right"], order["direction"]) == ([], "pay", "tax", "ascending")
    assert order["exceptions"] == 1
    assert order["examples"][0]["rows"][0] == int(people().pay.argmin())
    assert rules["[no]"]["columns"] == ["no"]


def test_csv(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = profile(capsys, table, "--format", "csv")
    assert ran.code == 0
    listed = list(csv.DictReader(io.StringIO(ran.out)))
    rules = document_of(capsys, table)["result"]["rules"]
    assert [row["rule"] for row in listed] == [rule["rule"] for rule in rules]
    assert [int(row["exceptions"]) for row in listed] == [rule["exceptions"] for rule in rules]
    assert list(listed[0]) == [
        "rank", "table", "kind", "rule", "english", "rows", "exceptions", "evidence", "strength", "score",
    ]  # fmt: skip


def queries(script: str) -> list[str]:
    return [query for query in script.split(";\n") if "SELECT" in query]


@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_sql_lists_what_breaks_each_rule(nulls: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = people().rename(columns={"zip": "the zip\n-- code", "city": 'ci"ty'})
    frame.loc[[3, 40], 'ci"ty'] = None
    path = str(tmp_path / "people.parquet")
    frame.to_parquet(path, index=False)
    rules = document_of(capsys, path, "--nulls", nulls)["result"]["rules"]
    ran = profile(capsys, path, "--nulls", nulls, "--format", "sql", "--dialect", "duckdb")
    assert ran.code == 0
    assert len(queries(ran.out)) == len(rules)
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE people AS SELECT * FROM '{path}'")
        for rule, query in zip(rules, queries(ran.out), strict=True):
            found = db.execute(query).fetchall()
            assert len(found) == violations(frame, rule, nulls), rule["rule"]


def violations(frame: pd.DataFrame, rule: dict[str, Any], nulls: str) -> int:
    """Rows that break a rule of one row, pairs of rows that contradict any other."""
    if rule["kind"] == "row":
        left, right = frame[rule["left"]], frame[rule["right"]]
        return int({"<": left >= right, "<=": left > right, "==": left != right}[rule["op"]].sum())
    columns = {"key": ["columns"], "fd": ["determinant", "dependent"], "od": ["context", "left", "right"]}[rule["kind"]]
    names = [name for side in columns for name in ([rule[side]] if isinstance(rule[side], str) else rule[side])]
    rows = frame[names] if nulls == "value" else frame[names].dropna()
    values = rows.astype(object).where(rows.notna(), None).values.tolist()
    found = 0
    for i, t in enumerate(values):
        for u in values[:i]:
            if rule["kind"] == "key":
                found += t == u
            elif rule["kind"] == "fd":
                found += t[:-1] == u[:-1] and t[-1] != u[-1]
            else:
                sign = 1 if rule["direction"] == "ascending" else -1
                found += t[:-2] == u[:-2] and (t[-2] - u[-2]) * (t[-1] - u[-1]) * sign < 0
    return found


def test_text(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = profile(capsys, table, "--format", "text").out
    assert "people: 300 rows, 7 columns" in out
    assert re.search(r"\d+ rules worth keeping, of \d+ candidates", out)
    assert "each `zip` has one `city`; 2 of 300 rows differ" in out
    assert "-o report.html" in out
    ran = profile(capsys, table, "-v", "--format", "text")
    assert ran.code == 0
    assert "strength" in ran.out
    assert "`city` is 'elsewhere'" in ran.out


def test_names_like_markup_are_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "people.csv"
    people().rename(columns=NAMES).to_csv(path, index=False)
    ran = profile(capsys, str(path), "--format", "text")
    assert ran.code == 0
    together = " ".join(ran.out.split())
    assert "each `<b>zip</b>` has one `[red]city[/red]`" in together


def test_a_file_is_written_whole(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "found.json"
    ran = profile(capsys, table, "-o", str(target), "--format", "json")
    assert (ran.code, ran.out) == (0, "")
    assert json.loads(target.read_text())["result"]["shown"] > 3
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("found")] == ["found.json"]


@pytest.fixture
def shop(tmp_path: Path) -> tuple[str, str]:
    """Orders that refer to customers; two refer to none."""
    rng = np.random.default_rng(3)
    customers = pd.DataFrame({"customer_id": range(5000, 5200), "name": [f"N{n}" for n in rng.integers(0, 90, 200)]})
    orders = pd.DataFrame(
        {
            "order_id": range(1000),
            "customer_id": rng.integers(5000, 5200, 1000),
            "amount": rng.normal(50, 9, 1000).round(2),
        }
    )
    orders.loc[[4, 9], "customer_id"] = [7777, 7778]
    customers.to_csv(tmp_path / "customers.csv", index=False)
    orders.to_csv(tmp_path / "orders.csv", index=False)
    return str(tmp_path / "orders.csv"), str(tmp_path / "customers.csv")


def test_tables_that_refer_to_each_other(shop: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, *shop)
    assert [one["name"] for one in document["tables"]] == ["orders", "customers"]
    (reference,) = [rule for rule in document["result"]["rules"] if rule["kind"] == "ind"]
    assert (reference["dependent"], reference["referenced"]) == ("orders.customer_id", "customers.customer_id")
    assert (reference["table"], reference["exceptions"]) == ("orders", 2)
    assert reference["english"].endswith(" values of `orders.customer_id` occur in `customers.customer_id`")
    assert {rule["table"] for rule in document["result"]["rules"] if rule["kind"] == "key"} == {"orders", "customers"}
    out = profile(capsys, *shop, "--format", "text").out
    assert "orders: 1,000 rows" in out
    assert "customers: 200 rows" in out


def test_references_in_sql(shop: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    script = profile(capsys, *shop, "--format", "sql", "--dialect", "duckdb").out
    with duckdb.connect() as db:
        for path in shop:
            db.execute(f"CREATE TABLE {Path(path).stem} AS SELECT * FROM '{path}'")
        answers = [db.execute(query).fetchall() for query in queries(script)]
    both = [all(f'FROM "{Path(path).stem}"' in query for path in shop) for query in queries(script)]
    assert sum(both) == 1
    missing = answers[both.index(True)]
    assert sorted(row[0] for row in missing) == [7777, 7778]


def test_tables_by_name(shop: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, f"o={shop[0]}", f"c={shop[1]}")
    assert [one["name"] for one in document["tables"]] == ["o", "c"]
    assert {rule["table"] for rule in document["result"]["rules"]} == {"o", "c"}


def test_limits(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = document_of(capsys, table)["result"]
    best = document_of(capsys, table, "--limit", "2")["result"]
    assert [r["rule"] for r in best["rules"]] == [r["rule"] for r in every["rules"]][:2]
    assert best["shown"] == 2
    short = document_of(capsys, table, "--max-context", "1")["result"]["rules"]
    assert all(len(r["determinant"]) == 1 for r in short if r["kind"] == "fd")
    assert not any(len(r["columns"]) > 1 for r in short if r["kind"] == "key")


def test_columns(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    few = document_of(capsys, table, "--columns", "zip,city")["result"]
    assert [column["name"] for column in few["columns"]] == ["zip", "city"]
    assert [rule["rule"] for rule in few["rules"]] == ["zip -> city"]
    rest = document_of(capsys, table, "--exclude", "zip,city")["result"]
    assert [column["name"] for column in rest["columns"]] == ["no", "begin", "end", "pay", "tax"]
    assert not any("zip" in rule["rule"] for rule in rest["rules"])


def test_a_time_limit_prints_what_was_found_and_exits_3(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = profile(capsys, table, "--time-limit", "0.000001", "--format", "json")
    assert ran.code == LIMIT
    document = json.loads(ran.out)
    assert document["partial"] is True
    assert any("time limit" in note or "limited time" in note for note in document["notes"])
    ran = profile(capsys, table, "--time-limit", "0.000001", "--format", "text")
    assert ran.code == LIMIT
    assert "PARTIAL: a limit was reached; there may be more rules." in ran.out


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "Missing argument 'TABLE...'"),
        (["TABLE", "--limit", "0"], "limit: 0; allowed: 1 or more"),
        (["TABLE", "--max-context", "4"], "max_context: 4; allowed: 1 to 3"),
        (["TABLE", "--format", "yaml"], "Invalid value for '--format'"),
        (["TABLE", "--dialect", "mysql"], "Invalid value for '--dialect'"),
        (["TABLE", "--columns", "nothing"], "nothing"),
        (["TABLE", "--time-limit", "0"], "time_limit: 0.0; allowed: seconds above 0"),
        (["TABLE", "TABLE"], "people"),
        (["missing.csv"], "missing.csv"),
    ],
)
def test_bad_usage(argv: list[str], text: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = profile(capsys, *[table if word == "TABLE" else word for word in argv])
    assert (ran.code, ran.out) == (USAGE, "")
    assert text in " ".join(ran.err.split())
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("rows", ["", "1,2\n", "1,2\n,\n"])
def test_hardly_any_rows(rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.csv"
    path.write_text("a,b\n" + rows)
    for form in ("json", "text", "csv", "sql"):
        ran = profile(capsys, str(path), "--format", form)
        assert ran.code == 0, ran.err
    assert document_of(capsys, str(path))["result"]["rules"] == []
