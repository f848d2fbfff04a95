"""The generated tables keep what they promise: rules hold, errors break them, clue counts are as announced."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from benchmarks.generators import (
    FAULTS,
    clues_reached,
    kinds_needed,
    letters,
    table_with_clues,
    tax,
    write_csv,
    write_parquet,
)

DEPENDENCIES = [
    (["zip"], "city"),
    (["zip"], "state"),
    (["area_code"], "state"),
    (["state", "marital_status"], "single_exemp"),
    (["state", "marital_status"], "married_exemp"),
    (["state", "has_child"], "child_exemp"),
    (["fname"], "gender"),
]


def depends(frame: pd.DataFrame, determinant: list[str], dependent: str) -> bool:
    return bool((frame.groupby(determinant)[dependent].nunique() <= 1).all())


def rate_falls(frame: pd.DataFrame) -> bool:
    """Whether, in some state, somebody earns more than another at a lower rate."""
    for _, people in frame.groupby("state"):
        by_salary = people.groupby("salary")["rate"].agg(["min", "max"]).sort_index()
        if (by_salary["min"].to_numpy()[1:] < by_salary["max"].cummax().to_numpy()[:-1]).any():
            return True
    return False


@pytest.mark.parametrize(("rows", "seed"), [(1_000, 1), (1_000, 2), (20_000, 3)])
def test_rules_of_clean_tax(rows: int, seed: int) -> None:
    frame = tax(rows, seed=seed).to_pandas()
    assert frame.shape == (rows, 15)
    for determinant, dependent in DEPENDENCIES:
        assert depends(frame, determinant, dependent), (determinant, dependent)
    assert not rate_falls(frame)
    assert not frame.duplicated(["area_code", "phone"]).any()
    assert not depends(frame, ["city"], "zip")
    assert not depends(frame, ["state"], "rate")
    assert frame["zip"].nunique() < rows / 2


def test_errors_break_rules_in_the_announced_share_of_rows() -> None:
    clean, dirty = tax(20_000, seed=3).to_pandas(), tax(20_000, seed=3, error_share=0.01).to_pandas()
    changed = clean.ne(dirty)
    assert int(changed.any(axis=1).sum()) == 200
    assert int(changed.sum().sum()) == 200
    assert set(changed.columns[changed.any()]) == set(FAULTS)
    for determinant, dependent in DEPENDENCIES:
        broken = dependent in FAULTS
        assert depends(dirty, determinant, dependent) != broken or dependent == "married_exemp"
    assert rate_falls(dirty)


def test_seed_decides_everything() -> None:
    assert tax(500, seed=4).equals(tax(500, seed=4))
    assert not tax(500, seed=4).equals(tax(500, seed=5))


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_small_tables(rows: int) -> None:
    assert tax(rows, seed=1).num_rows == rows


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"error_share 1\.5"):
        tax(10, seed=1, error_share=1.5)
    with pytest.raises(ValueError, match="rows 3 must be at least"):
        table_with_clues(3, 100, seed=1)


def test_written_files_read_back(tmp_path) -> None:
    from pyarrow import csv, parquet

    table = tax(200, seed=6)
    write_parquet(table, tmp_path / "tax.parquet")
    write_csv(table, tmp_path / "tax.csv")
    assert parquet.read_table(tmp_path / "tax.parquet").equals(table)
    assert csv.read_csv(tmp_path / "tax.csv").to_pandas().equals(table.to_pandas())


@pytest.mark.parametrize("wanted", [2, 7, 100, 400])
def test_number_of_distinct_clues(wanted: int) -> None:
    rows = max(60, 2 * kinds_needed(wanted))
    codes = table_with_clues(rows, wanted, seed=9)
    assert codes.dtype == np.int32
    assert codes.flags["C_CONTIGUOUS"]
    row_values = [tuple(r) for r in codes.T.tolist()]
    clues = {tuple((a > b) - (a < b) for a, b in zip(t, u, strict=True)) for t, u in permutations(row_values, 2)}
    assert len(clues) == clues_reached(wanted) >= wanted


def test_letters_have_sixteen_dependent_values_a_column() -> None:
    frame = letters(20_000, seed=1).to_pandas()
    assert frame.shape == (20_000, 17)
    assert int(frame.to_numpy().min()) == 0
    assert int(frame.to_numpy().max()) == 15
    assert frame.equals(letters(20_000, seed=1).to_pandas())
    assert not frame.equals(letters(20_000, seed=2).to_pandas())
    within = frame.groupby("glyph").transform("std").mean()  # what a glyph leaves open is less than a column's spread
    assert (within < 0.75 * frame.drop(columns="glyph").std()).mean() > 0.5
    shared = frame[frame["glyph"] == 0].drop(columns="glyph").corr().abs().to_numpy()
    assert np.median(shared[np.triu_indices(16, 1)]) > 0.3
