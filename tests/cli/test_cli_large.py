"""`tuplewise dc discover` where all pairs are too many: algorithms that compare few, and estimates from a sample."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, inside

USAGE, LIMIT = 2, 3


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """600 visits: a key, `zip -> city` with one exception, and `left` never before `came`, in all rows but three."""
    rng = random.Random(1)
    lines = ["id,zip,city,came,left"]
    for i in range(600):
        zip_, came = rng.randint(1, 40), rng.randint(1, 50)
        city = 7 if i == 100 else zip_ // 4 + 50
        lines.append(f"{i},{zip_},{city},{came},{came - 1 if i % 200 == 0 else came + rng.randint(0, 9)}")
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def discover(capsys: pytest.CaptureFixture[str], table: str, *more: str) -> Ran:
    return inside(capsys, "dc", "discover", table, "--device", "cpu", *more)


def result(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)["result"]
    return found


@pytest.mark.parametrize("more", [[], ["--single-tuple"], ["--max-predicates", "2"], ["--no-cross-columns"]])
def test_every_algorithm_lists_the_same_bytes(more: list[str], table: str, capsys: pytest.CaptureFixture[str]) -> None:
    listed = {}
    for algorithm in ("evidence", "hybrid", "hydra", "auto"):
        ran = discover(capsys, table, *more, "--algorithm", algorithm)
        found = result(ran)
        listed[algorithm] = ran.out.partition('"constraints": ')[2]
        assert found["algorithm"] == algorithm or algorithm == "auto"
        assert (found["search"] is None) == (found["algorithm"] == "evidence")
        assert found["algorithm_reason"]
    assert len(set(listed.values())) == 1
    assert listed["hybrid"].count('"rule"') > 3


def test_text_tells_how_few_pairs_were_compared(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = discover(capsys, table, "--algorithm", "hybrid", "--format", "text", "-v").out
    assert re.search(r"^hybrid \(asked for", shown, re.MULTILINE)
    assert re.search(r"^compared [\d,]+ pairs of rows \([\d.]+ % of all\)", shown, re.MULTILINE)
    assert re.search(r"^equal in +pairs +candidates decided$", shown, re.MULTILINE)


def test_a_time_limit_leaves_what_was_decided(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = discover(capsys, table, "--algorithm", "hybrid", "--time-limit", "0.000001")
    document = json.loads(ran.out)
    assert (ran.code, document["partial"]) == (LIMIT, True)
    assert document["result"]["search"]["undecided"] >= 0


def test_estimates_are_marked_in_every_format(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--error", "0.01", "--sample-pairs", "20000", "--seed", "3", "--single-tuple"]
    ran = discover(capsys, table, *argv)
    found = result(ran)
    assert found["estimate"] == {"sampled_pairs": 20000, "confidence": 0.95, "measure": "g1"}
    assert (found["algorithm"], found["search"]) == ("evidence", None)
    assert json.loads(ran.out)["options"]["sample_pairs"] == 20000
    notes = json.loads(ran.out)["notes"]
    assert any(n.startswith("g1 is estimated from 20,000 random pairs of 179,700:") for n in notes)
    rules = {c["rule"]: c for c in found["constraints"]}
    fd = rules["not(t.zip == u.zip and t.city != u.city)"]
    assert fd["estimated"]
    assert fd["violating_pairs"] is None
    assert 0 <= fd["g1_low"] <= fd["g1"] <= fd["g1_high"] < 0.01
    row = rules["not(t.came > t.left)"]
    assert (row["estimated"], row["violating_pairs"], row["g1"]) == (False, 3, 3 / 600)
    lines = list(csv.DictReader(io.StringIO(discover(capsys, table, *argv, "--format", "csv").out)))
    assert {line["rule"]: line["g1_high"] for line in lines} == {r: str(c["g1_high"]) for r, c in rules.items()}
    text = discover(capsys, table, *argv, "--format", "text").out
    assert "(g1 <= 0.01, estimated from 20,000 random pairs)" in text
    assert "95 % interval" in text
    assert discover(capsys, table, *argv).out.partition('"constraints": ')[2] == ran.out.partition('"constraints": ')[2]


def test_a_sample_of_a_good_part_of_all_pairs_is_exact(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--error", "0.01"]
    sampled = discover(capsys, table, *more, "--sample-pairs", "1000000")
    assert result(sampled)["estimate"] is None
    assert result(sampled)["constraints"] == result(discover(capsys, table, *more))["constraints"]
    notes = json.loads(sampled.out)["notes"]
    assert any("all 359,400 ordered pairs were compared instead of a sample" in note for note in notes)


def test_a_sample_without_error_lists_what_no_drawn_pair_violates(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = result(discover(capsys, table, "--sample-pairs", "5000"))
    assert {c["g1"] for c in found["constraints"]} == {0.0}
    assert all(0 < c["g1_high"] < 0.001 for c in found["constraints"])
    assert found["algorithm"] == "evidence"
    text = discover(capsys, table, "--sample-pairs", "5000", "--format", "text").out
    assert "(not violated by 5,000 random pairs)" in text
