"""Options from Python: a value of a wrong type is one clear error, and numbers of any type are taken."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tuplewise as tw

TABLE = pd.DataFrame({"a": [1, 2, 2], "b": [1, 1, 2]})
FD = "a -> b"


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"pairs": "3"}, "pairs: '3'; allowed: a whole number, 0 or more"),
        ({"pairs": None}, "pairs: 'None'; allowed: a whole number, 0 or more"),
        ({"pairs": 2.5}, "pairs: 2.5; allowed: a whole number, 0 or more"),
        ({"pairs": True}, "pairs: True; allowed: a whole number, 0 or more"),
        ({"pairs": -1}, "pairs: -1; allowed: 0 or more"),
        ({"seed": "a"}, "seed: 'a'; allowed: a whole number, 0 or more"),
        ({"seed": -1}, "seed: -1; allowed: 0 or more"),
        ({"time_limit": "5"}, "time_limit: '5'; allowed: seconds above 0"),
        ({"time_limit": float("nan")}, "time_limit: nan; allowed: seconds above 0"),
        ({"time_limit": [1]}, "time_limit: [1]; allowed: seconds above 0"),
        ({"memory_limit": "4G"}, "memory_limit: '4G'; allowed: bytes above 0, a whole number"),
        ({"memory_limit": 0}, "memory_limit: 0; allowed: bytes above 0, a whole number"),
        ({"count_only": "no"}, "count_only: 'no'; allowed: True or False"),
        ({"key": 5}, "key: 5; allowed: text, or a list of texts"),
        ({"key": ["a", 1]}, "key: ['a', 1]; allowed: text, or a list of texts"),
        (
            {"pairs": "x", "seed": 1.5, "time_limit": 0},
            "pairs: 'x'; allowed: a whole number, 0 or more; time_limit: 0; allowed: seconds above 0; "
            "seed: 1.5; allowed: a whole number, 0 or more",
        ),
    ],
)
def test_faults_of_a_check(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(tw.InputError) as error:
        tw.check(TABLE, FD, device="cpu", **options)
    assert str(error.value) == fault


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"max_predicates": "3"}, "max_predicates: '3'; allowed: a whole number, 1 or more"),
        ({"sample_pairs": 1e6}, "sample_pairs: 1000000.0; allowed: a whole number, 1 or more"),
        ({"sample_pairs": 0}, "sample_pairs: 0; allowed: 1 or more"),
        ({"cross_columns": "no"}, "cross_columns: 'no'; allowed: True or False"),
        ({"algorithm": "fastest"}, "'auto' or 'evidence' or 'hybrid' or 'hydra'"),
        ({"algorithm": ["hydra"]}, "'auto' or 'evidence' or 'hybrid' or 'hydra'"),
        ({"seed": None, "time_limit": True}, "time_limit: True; allowed: seconds above 0; seed: 'None'"),
    ],
)
def test_faults_of_a_discovery(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(tw.InputError) as error:
        tw.discover_dcs(TABLE, device="cpu", **options)
    assert fault in str(error.value)


@pytest.mark.parametrize("discover", [tw.discover_fds, tw.discover_keys, tw.discover_ods])
@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"error": "1"}, "error: '1'; allowed: 0 <= error < 1 (share of rows to remove, g3)"),
        ({"error": "x"}, "error: 'x'; allowed: a decimal number"),
        ({"max_context": -1}, "max_context: -1; allowed: 0 or more"),
        ({"max_context": 1.5}, "max_context: 1.5; allowed: a whole number, 0 or more"),
        ({"algorithm": "hyfd"}, "algorithm: 'hyfd'; allowed: 'auto' or 'hybrid' or 'levelwise'"),
        (
            {"algorithm": "hybrid", "error": 0.1, "seed": -1, "time_limit": 0},
            "time_limit: 0; allowed: seconds above 0; seed: -1; allowed: 0 or more; algorithm with error above 0: "
            "'hybrid'; allowed: 'auto' or 'levelwise'. Leave the algorithm out",
        ),
        ({"nulls": "none"}, "'none'"),
    ],
)
def test_faults_of_dependency_discoveries(discover: Any, options: dict[str, Any], fault: str) -> None:
    with pytest.raises(tw.InputError) as error:
        discover(TABLE, device="cpu", **options)
    assert fault in str(error.value)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"lexicographic": 0}, "lexicographic: 0; allowed: 1 or more"),
        ({"lexicographic": 2, "error": "0.1"}, "lexicographic with error: '0.1'; allowed: 0. Dependencies with"),
        ({"nulls": "unknown"}, "nulls of order dependencies: 'unknown'; allowed: 'value'. Order dependencies are"),
    ],
)
def test_faults_of_order_discoveries(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(tw.InputError) as error:
        tw.discover_ods(TABLE, device="cpu", **options)
    assert fault in str(error.value)
    if "nulls" in options:
        with pytest.raises(tw.InputError, match=re.escape(fault)):
            tw.check_ods(TABLE, "a -> b", nulls="unknown")


def test_options_nobody_knows_are_told_with_near_ones() -> None:
    with pytest.raises(TypeError, match=r"discover_fds\(\) has no option: 'max_contxt'. Did you mean 'max_context'"):
        tw.discover_fds(TABLE, max_contxt=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"discover_keys\(\) has no option: 'lexicographic'"):
        tw.discover_keys(TABLE, lexicographic=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"rows": "5"}, "rows: '5'; allowed: a whole number, 0 or more"),
        (
            {"rows": 1.5, "sep": 3, "header": "x"},
            "sep: 3; allowed: one character that ends no line; header: 'x'; allowed: True or False",
        ),
        ({"columns": 3}, "columns: 3; allowed: text, or a list of texts"),
        ({"skip_rows": -1}, "skip_rows: -1; allowed: 0 or more"),
        ({"skip_rows": None}, "skip_rows: 'None'; allowed: a whole number, 0 or more"),
        ({"skip_footer": "1"}, "skip_footer: '1'; allowed: a whole number, 0 or more"),
        ({"header_row": 0}, "header_row: 0; allowed: 1 or more"),
        ({"header_row": 3, "skip_rows": 2}, "header_row with skip_rows: 2; allowed: one of the two"),
        ({"header_row": 3, "header": False}, "header_row without a header: 3. Take skip_rows"),
        ({"decimal": None}, "decimal: 'None'; allowed: one character that is no letter, digit or sign"),
        ({"decimal": ",,"}, "decimal: ',,'; allowed: one character"),
        ({"thousands": "-"}, "thousands: '-'; allowed: one character that is no letter, digit or sign"),
        ({"thousands": "."}, "thousands: '.'; allowed: another character than decimal"),
        ({"exclude": [None]}, "exclude: [None]; allowed: text, or a list of texts"),
    ],
)
def test_faults_of_loading(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(tw.InputError) as error:
        tw.load(TABLE, **options)
    assert fault in str(error.value)


def test_numbers_of_any_type_are_taken_and_written_as_json_has_them() -> None:
    found = tw.discover_dcs(
        tw.load(TABLE, rows=np.int64(3)), device="cpu", max_predicates=np.int32(2), seed=np.uint8(4), time_limit=600
    )
    options = json.loads(found.to_json())["options"]
    assert (options["max_predicates"], options["seed"], options["time_limit"]) == (2, 4, 600.0)
    check = tw.check(TABLE, FD, device="cpu", pairs=np.int64(1), time_limit=Decimal(600))
    assert json.loads(check.to_json())["options"]["pairs"] == 1
    assert len(check.rules[0].to_dict()["pairs"]) == 1


def test_hints_name_options_as_python_does() -> None:
    wide = pd.DataFrame({f"c{i}": ["1", "2"] for i in range(300)})
    with pytest.raises(tw.InputError, match=r"\(columns, exclude\), or set max_predicates or time_limit$"):
        tw.discover_dcs(wide, device="cpu")
    with pytest.raises(tw.RuleError, match=r"Read both as text: types=\{'a': 'text'\}"):
        tw.check(pd.DataFrame({"a": [1], "b": ["x"]}), "not(t.a == u.b)", device="cpu")
