"""Filters of DataFrames: run in Spark and compared with our check."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from contracts_for_exports import RULES, checked, contract_of, random_table, reference_table

from tuplewise.engine.contract.exports.spark_filters import export
from tuplewise.engine.contract.file import ContractFile

IND = {"ind-1": ("ind", "`the t`.x <= ref.id"), "ind-2": ("ind", "`the t`[x, s] <= ref[id, s]")}
ALL = {**RULES, **IND}


def functions(text: str) -> Any:
    """The mapping RULES of the generated module."""
    space: dict[str, Any] = {}
    exec(compile(text, "filters.py", "exec"), space)
    return space["RULES"]


@pytest.mark.spark
@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_filters_return_what_the_check_lists(spark: Any, nulls: str) -> None:
    from tuplewise.engine.spark.local_frames import frame_of

    table, contract = random_table(3), contract_of(ALL, nulls)
    found = checked(contract, table)
    df, ref = frame_of(spark, table), frame_of(spark, reference_table())
    rules = functions(export(contract, None, "spark").text)
    assert list(rules) == list(ALL)
    for rule_id, (name, function) in rules.items():
        assert name == "the t"
        ours = found[rule_id]
        returned = function(df, ref) if rule_id in IND else function(df)
        rows = [tuple(row) for row in returned.collect()]
        places = [tuple(example["rows"]) for example in ours["examples"]]
        if rule_id in IND:
            assert len(rows) == ours["exceptions"], rule_id
            assert returned.columns == df.columns
        elif rule_id.startswith("dc") and places and len(places[0]) == 2:
            assert sorted(row[:2] for row in rows) == sorted(places), rule_id
        else:
            assert sorted(row[0] for row in rows) == sorted({place[0] for place in places}), rule_id
            if rule_id not in ("dc-1", "dc-2"):
                assert returned.columns == df.columns


HOSTILE = "'''\"\"\"); import os; os.abort() #\\"


@pytest.mark.spark
def test_names_and_values_stay_names_and_values(spark: Any) -> None:
    import pyarrow as pa

    from tuplewise.engine.spark.local_frames import frame_of

    text = (
        "tuplewise_contract: 1\n"
        "tables: {\"a'b\\n\": {columns: {\"c`d\\\"'\": {type: text}, tuplewise_place: {type: text}}}}\n"
        "rules:\n  - {id: v, kind: values, english: \"x\\nimport os; os.abort()\", rule: \"`c``d\\\"'` in ('"
        + HOSTILE.replace("'", "''").replace("\\", "\\\\").replace('"', '\\"')
        + "')\"}\n  - {id: class, kind: key, rule: [\"c`d\\\"'\"]}\n"
    )
    contract = ContractFile("rules.yaml", text).contract
    found = export(contract, None, "spark")
    tree = ast.parse(found.text)
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["v", "rule_class"]
    df = frame_of(spark, pa.table({"c`d\"'": [HOSTILE, "x", "x"], "tuplewise_place": ["1", "2", "3"]}))
    rules = functions(found.text)
    assert [row[1] for row in rules["v"][1](df).collect()] == ["2", "3"]
    assert [row[1] for row in rules["class"][1](df).collect()] == ["3"]
    assert found.suffix == ".py"
    assert found.left_out == ()
