"""The cases of order dependencies, FDs and keys at a small scale, their peers, and what the page says of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import report
from benchmarks.answers import digest_dependencies
from benchmarks.case import Case
from benchmarks.cases import CASES
from benchmarks.datasets import ParquetTable
from benchmarks.dependency_peers import FASTOD, HYFD, HYUCC, parse_order_dependency, text_frame
from benchmarks.od_cases import DEPENDENCY_CASES
from benchmarks.report_od import LEVELWISE, SHOWN_DEPENDENCIES, dependency_sentences, dependency_tables
from benchmarks.wide_cases import WIDE_CASES


def some_days(rows: int) -> pa.Table:
    """Months go with weeks, and a quarter is a month's; `left` falls where `day` rises."""
    day = list(range(rows))
    columns = {
        "day": day,
        "week": [d // 7 for d in day],
        "month": [d // 28 for d in day],
        "quarter": [d // 84 for d in day],
        "left": [-(d // 3) for d in day],
        "weekday": [d % 7 for d in day],
    }
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def small(case: Case, folder: Path) -> tuple[Case, Path]:
    dataset = ParquetTable("days", some_days, 200)
    return replace(case, dataset=dataset), dataset.write(folder)


def test_digest_forgets_the_order_of_either_side() -> None:
    one, other = ((0, 2), "ascending", (1, 3)), ((0, 2), "descending", (1, 3))
    assert digest_dependencies([one, other]) == digest_dependencies([other, ((2, 0), "ascending", (3, 1))])
    assert digest_dependencies([one])[1] != digest_dependencies([other])[1]
    assert digest_dependencies([((1,), "key", ())])[1] != digest_dependencies([((), "constant", (1,))])[1]
    assert digest_dependencies([])[0] == 0


def test_peer_text_is_read() -> None:
    assert parse_order_dependency("{} : [] -> 10<=") == ((), "constant", (9,))
    assert parse_order_dependency("{3,1} : 4<= ~ 2<=") == ((0, 2), "ascending", (1, 3))
    assert parse_order_dependency("{1} : 2>= ~ 4<=") == ((0,), "descending", (1, 3))
    with pytest.raises(ValueError, match="not an order dependency"):
        parse_order_dependency("[1] -> 2")


def test_values_are_texts_and_nulls_stay() -> None:
    frame = text_frame(pa.table({"a": [1, None, 3], "b": ["x", "", None]}))
    assert frame.to_dict("list") == {"a": ["1", None, "3"], "b": ["x", "", None]}


@pytest.mark.parametrize("case", DEPENDENCY_CASES, ids=lambda case: case.name)
def test_peers_give_the_same_answer(case: Case, tmp_path: Path) -> None:
    case, path = small(case, tmp_path)
    ours = case.ours(case, path, 1)
    assert len(ours["warm_seconds"]) == 1
    assert all(len(times) == 2 for times in ours["kernel_seconds"].values())
    assert sum(ours["figures"]["kinds"].values()) == ours["answer"]["count"] > 0
    for peer in case.peers.values():
        pytest.importorskip("desbordante", reason="the peer package is not installed")
        assert peer.measure(case, path, 0)["answer"] == ours["answer"]


def test_both_algorithms_give_the_same_answer(tmp_path: Path) -> None:
    answers = []
    for name in ("od/adult", LEVELWISE):
        case, path = small(CASES[name], tmp_path)
        answers.append(case.ours(case, path, 0)["answer"])
    assert answers[0] == answers[1]


def test_groups_say_what_is_looked_for(tmp_path: Path) -> None:
    kinds = {}
    for name in ("od/flights", "fd/flights", "key/flights"):
        case, path = small(CASES[name], tmp_path)
        kinds[name] = set(case.ours(case, path, 0)["figures"]["kinds"])
    assert kinds["od/flights"] == {"constant", "ascending", "descending"}
    assert (kinds["fd/flights"], kinds["key/flights"]) == ({"constant"}, {"key"})


# ---------------------------------------------------------------- the page of benchmarks


def record(case: str, implementation: str = "tuplewise", **changes: Any) -> dict[str, Any]:
    figures = {
        "kinds": {"constant": 78, "ascending": 1_000, "descending": 405},
        "search": {"share_of_pairs": 0.00931, "validated": 1_055, "sample_rows": 2_345},
    }
    plain = {
        "run": "one", "time_utc": "2026-01-01T00:00:00+00:00", "case": case, "implementation": implementation,
        "dataset": {"sha256": "d", "rows": 32_560, "columns": 15}, "answer": {"count": 1_483, "digest": "a"},
        "device": "cpu: some, 2 cores", "cold_seconds": 119.0, "warm_seconds": [0.5, 0.25, 0.5],
        "kernel_seconds": {"validation": [9.0, 0.1, 0.2], "inversion": [9.0, 0.1, 0.25]}, "figures": figures,
        "peak_bytes": 320e6, "versions": {"python": "3.11.7"}, "parameters": {},
    }  # fmt: skip
    return plain | changes


def test_tables_stand_beside_their_peers() -> None:
    slow = record("od/adult", FASTOD, run="two", warm_seconds=[])
    keys = record("key/flights", HYUCC, warm_seconds=[11.0])
    orders, equalities = dependency_tables([record("od/adult"), slow, record("key/flights"), keys]).split("\n\nFunc")
    assert orders.splitlines()[4:] == [
        "| Adult | 32,560 x 15 | 78, 1,405 | 0.93 % | 1,055 | 0.5 s | 119 s (run of its own) | 238 x | 320 MB |"
    ]
    assert equalities.splitlines()[4:] == [
        "| the same, keys | 32,560 x 15 | 1,483 | 0.93 % | 0.5 s | 11 s | 22 x | 320 MB |"
    ]
    assert dependency_tables([]) == dependency_sentences([]) == ""


def test_sentences_say_growth_phases_and_levels() -> None:
    growth = [record(f"od/flights{rows}") for rows in ("-50000", "-100000", "-200000", "")]
    assert dependency_sentences(growth) == (
        "- Order dependencies of the first 32,560, 32,560, 32,560, 32,560 flights: 0.5 s, 0.5 s, 0.5 s, 0.5 s.\n"
        "- Of the last warm run on all flights: inversion 0.25 s, validation 0.2 s."
    )
    assert dependency_sentences(growth[:3]) == ""
    assert dependency_sentences([record("od/adult"), record(LEVELWISE, warm_seconds=[20.0])]) == (
        "- HyOD as published (`--algorithm levelwise`) on Adult: 20 s, 1,055 candidates validated on the table,"
        " 2,345 rows in the sample at the end; `hybrid`: 0.5 s, 1,055 validated."
    )


def test_peers_are_named_where_they_were_run() -> None:
    alone = report.figures([record("od/adult")])
    assert "\n\nMedians of warm runs on cpu: some, 2 cores (python 3.11.7).\n\n## Keys" in alone
    both = [record("fd/adult"), record("fd/adult", HYFD), record("od/adult"), record("od/adult", FASTOD)]
    assert "; FASTOD and HyFD are Desbordante's, with default threads.\n\n## Keys" in report.figures(both)


def test_all_that_is_shown_is_a_case() -> None:
    narrow = {case.name for case in DEPENDENCY_CASES}
    assert narrow <= set(SHOWN_DEPENDENCIES) <= narrow | {case.name for case in WIDE_CASES} <= set(CASES)
