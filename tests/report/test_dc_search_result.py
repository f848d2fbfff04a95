"""What a result says of a search that compared few pairs, of a limit that left candidates open, and of estimates."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.dc.estimate import Estimate
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.report.dc_result import DcResult

PEOPLE = pd.DataFrame({
    "zip": ["1", "1", "2", "3"],
    "city": ["A", "A", "B", "B"],
    "pay": [5, 6, 6, 8],
    "tax": [1, 1, 2, 2],
})  # fmt: skip
HYBRID: dict[str, Any] = {
    "sampled_pairs": 40,
    "compared_pairs": 1234567,
    "share_of_pairs": 0.034,
    "equal_rows": 0,
    "rounds": 2,
    "column_sets": [
        {"columns": [["zip", "zip"], ["city", "city"]], "pairs": 1200000, "decided": 31},
        {"columns": [["pay", "tax"]], "pairs": 34527, "decided": 2},
    ],
    "validated": 3,
    "violated": 1,
    "undecided": 0,
    "seconds_per": {"pair": 3e-9, "row": 1e-8, "validation": 0.1},
}


@pytest.fixture(scope="module")
def found() -> DcDiscovery:
    return discover(tw.load(PEOPLE, name="people"), DcDiscoverOptions(device="cpu", algorithm="evidence"))


def searched(found: DcDiscovery, **changed: Any) -> DcResult:
    of_hybrid = {"algorithm": "hybrid", "algorithm_reason": "auto: few pairs agree", "distinct_evidences": None}
    return DcResult(replace(found, **of_hybrid, search={**HYBRID, **changed}))


def test_json_holds_the_search(found: DcDiscovery) -> None:
    document = json.loads(searched(found).to_json())
    result = document["result"]
    assert result["search"] == HYBRID
    assert (result["algorithm"], result["algorithm_reason"]) == ("hybrid", "auto: few pairs agree")
    assert list(result)[-1] == "constraints"
    assert len(result["constraints"]) == result["count"] > 3
    evidence = json.loads(DcResult(found).to_json())["result"]
    assert evidence["search"] is None
    assert evidence["constraints"] == result["constraints"]
    nothing = json.loads(searched(found, column_sets=[]).to_json())["result"]
    assert nothing["constraints"] == result["constraints"]


def test_text_says_how_it_was_found(found: DcDiscovery) -> None:
    lines = searched(found).to_text().splitlines()
    assert lines[3] == "hybrid (auto: few pairs agree)"
    assert lines[4] == (
        "compared 1,234,567 pairs of rows (3.4 % of all), among them all that agree on one of 2 column sets; "
        "3 candidates checked on the table, 1 violated"
    )
    assert "equal in" not in "\n".join(lines)
    verbose = searched(found).to_text(verbose=True)
    assert re.search(r"^equal in +pairs +candidates decided$", verbose, re.MULTILINE)
    assert re.search(r"^zip, city +1,200,000 +31$", verbose, re.MULTILINE)
    assert re.search(r"^pay = tax +34,527 +2$", verbose, re.MULTILINE)
    one = searched(found, column_sets=[{"columns": [], "pairs": 6, "decided": 1}], validated=1, violated=0)
    settled = searched(found, validated=0, violated=0).to_text()
    assert "; nothing left to check on the table\n" in settled
    assert "nothing left" not in searched(found, validated=0, violated=0, undecided=3).to_text()
    assert "violated; 12 outlier rows compared with all others\n" in searched(found, outlier_rows=12).to_text()
    shown = one.to_text()
    assert ", among them all that agree on one column set; 1 candidate checked on the table, none violated" in shown
    assert re.search(r"^\(all pairs\) +6 +1$", one.to_text(verbose=True), re.MULTILINE)


def test_text_says_why_evidence_was_compared(found: DcDiscovery) -> None:
    assert DcResult(found).to_text().splitlines()[3] == f"evidence ({found.algorithm_reason})"


def test_text_of_another_search_says_what_it_has(found: DcDiscovery) -> None:
    hydra = {
        "compared_pairs": 900, "share_of_pairs": 0.5, "preliminary_constraints": 12, "violating_pairs": 1700,
        "sampled_pairs": 80,
    }  # fmt: skip
    shown = DcResult(replace(found, algorithm="hydra", algorithm_reason="asked for", search=hydra)).to_text()
    assert (
        "hydra (asked for)\n"
        "compared 900 pairs of rows (50 % of all); 12 rules of the sample refined to 1,700 violating pairs\n"
    ) in shown


def test_candidates_that_a_limit_left_open_are_counted(found: DcDiscovery) -> None:
    partial = searched(found, undecided=1017)
    partial = DcResult(replace(partial._found, partial=True, notes=["closure may still drop some"]))
    missing = "there may be more constraints, and smaller ones: 1,017 candidates were undecided"
    assert f"PARTIAL: a limit was reached; {missing}.\nnote: closure may still drop some" in partial.to_text()
    assert f"Partial: a limit was reached; {missing}." in partial._repr_html_()
    one = DcResult(replace(searched(found, undecided=1)._found, partial=True))
    assert "1 candidate was undecided" in one.to_text()
    assert "undecided" not in DcResult(replace(found, partial=True)).to_text()


# ---------------------------------------------------------------- estimates


@pytest.fixture(scope="module")
def estimated(found: DcDiscovery) -> DcResult:
    count = len(found.arrays)
    g1 = np.linspace(0, 0.01, count)
    marks = np.ones(count, dtype=np.bool_)
    marks[1] = False
    estimate = Estimate(1000, 0.95, np.where(marks, g1 / 2, g1), np.where(marks, 2 * g1 + 0.001, g1), marks)
    options = replace(found.options, error=Decimal("0.01"), sample_pairs=1000)
    ranking = replace(found.ranking, g1=g1)
    return DcResult(replace(found, estimate=estimate, ranking=ranking, options=options))


def test_json_marks_each_estimated_constraint(estimated: DcResult) -> None:
    result = json.loads(estimated.to_json())["result"]
    assert result["estimate"] == {"sampled_pairs": 1000, "confidence": 0.95, "measure": "g1"}
    first, second, third = result["constraints"][:3]
    assert list(first) == [
        "id", "rule", "predicates", "kind", "violating_pairs", "g1", "estimated", "g1_low", "g1_high",
        "succinctness", "coverage",
    ]  # fmt: skip
    assert (first["violating_pairs"], first["estimated"], first["g1_high"]) == (None, True, 0.001)
    assert (second["violating_pairs"], second["estimated"]) == (0, False)
    assert second["g1_low"] == second["g1"] == second["g1_high"]
    assert third["g1_low"] < third["g1"] < third["g1_high"]


def test_pandas_and_csv_have_the_intervals(estimated: DcResult, found: DcDiscovery) -> None:
    frame = estimated.to_pandas()
    assert list(frame.columns)[-3:] == ["estimated", "g1_low", "g1_high"]
    assert frame["violating_pairs"].isna().tolist() == frame["estimated"].tolist()
    assert frame["violating_pairs"][1] == 0
    assert ((frame["g1_low"] <= frame["g1"]) & (frame["g1"] <= frame["g1_high"])).all()
    lines = list(csv.DictReader(io.StringIO(estimated.to_csv())))
    assert [line["violating_pairs"] for line in lines[:2]] == ["", "0"]
    assert [float(line["g1_high"]) for line in lines] == frame["g1_high"].tolist()
    assert [line["estimated"] for line in lines[:2]] == ["true", "false"]
    assert "g1_low" not in DcResult(found).to_csv()
    assert "g1_low" not in DcResult(found).to_pandas()


def test_text_html_and_repr_say_estimated(estimated: DcResult) -> None:
    shown = estimated.to_text(rank_by="g1")
    assert "(g1 <= 0.01, estimated from 1,000 random pairs); 12 ordered pairs" in shown
    assert re.search(r"^ +kind +g1 +95 % interval +coverage", shown, re.MULTILINE)
    assert re.search(r"^1 +\w+ +0 +0 to 0\.001 +", shown, re.MULTILINE)
    assert re.search(r"^2 +\w+ +[\d.]+ +exact +", shown, re.MULTILINE)
    page = estimated._repr_html_()
    assert "g1 &lt;= 0.01, estimated from 1,000 random pairs" in page
    assert "<th>95 % interval</th>" in page
    assert '<th scope="col" class="left">95 % interval</th>' in estimated.to_html()
    assert "<td>0 to 0.001</td>" in page
    assert "g1 <= 0.01, estimated from 1,000 random pairs" in repr(estimated)
    exact = DcResult(replace(estimated._found, options=replace(estimated._found.options, error=Decimal(0))))
    assert "(not violated by 1,000 random pairs)" in exact.to_text()
