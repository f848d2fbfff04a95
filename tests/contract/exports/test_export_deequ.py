"""Checks of Deequ: the Python is run against a stub that records calls, the Scala is read by Scala's own parser."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from contracts_for_exports import RULES, checked, contract_of, random_table

from tuplewise.engine.contract.exports.deequ import export, export_python

TOLERANT = {"key-1": 0.2, "values-1": 0.001, "not_null-1": 0.125}
TOLERANCES = {name: f", tolerance: {{share: {share}}}" for name, share in TOLERANT.items()}
OUT = ("fd-1", "fd-2", "fd-3", "od-1", "od-2", "od-3", "dc-1", "dc-2")


class Check:
    """Records the calls of a check."""

    def __init__(self, spark: Any, level: str, name: str) -> None:
        self.level, self.name, self.calls = level, name, list[Any]()

    def __getattr__(self, method: str) -> Any:
        def record(*arguments: Any) -> Check:
            self.calls.append((method, *arguments))
            return self

        return record


def checks_of(text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The checks of table `the t`, by the ids of the rules."""
    module = ModuleType("pydeequ.checks")
    module.Check, module.CheckLevel = Check, SimpleNamespace(Error="Error", Warning="Warning")  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "pydeequ", ModuleType("pydeequ"))
    monkeypatch.setitem(__import__("sys").modules, "pydeequ.checks", module)
    space: dict[str, Any] = {}
    exec(compile(text, "checks.py", "exec"), space)
    return {check.name: check for check in space["the_t"](None)}


def test_the_calls_of_pydeequ(monkeypatch: pytest.MonkeyPatch) -> None:
    contract = contract_of(RULES, **TOLERANCES | {"row-1": ", severity: warning"})
    found = export_python(contract, None)
    assert found.left_out == OUT
    assert found.suffix == ".py"
    checks = checks_of(found.text, monkeypatch)
    assert list(checks) == [name for name in RULES if name not in OUT]
    assert {name for name, check in checks.items() if check.level == "Warning"} == {"row-1"}
    calls = {}
    for name, check in checks.items():
        calls[name] = [tuple(one for one in call if not callable(one)) for call in check.calls]
    filled = "`a b` IS NOT NULL"
    assert calls["key-1"] == [("hasDistinctness", ["k"]), ("where", "`k` IS NOT NULL")]
    assert calls["key-2"] == [("hasDistinctness", ["a b", "x"]), ("where", f"{filled} AND `x` IS NOT NULL")]
    assert calls["key-3"] == [("isUnique", "d")]
    assert calls["not_null-1"] == [("hasCompleteness", "a b")]
    assert calls["not_null-2"] == [("isComplete", "k")]
    assert calls["row-1"] == [("satisfies", "NOT coalesce(`x` > `y`, FALSE)", "row-1")]
    inside = "('it\\'s', 'q\"uo', 'back\\\\slash', '\\u0024{x}')"
    values = f"NOT coalesce(`a b` NOT IN {inside}, FALSE)"
    assert calls["values-1"] == [("satisfies", values, "values-1"), ("where", filled)]
    least = {"key-1": 0.8, "values-1": 0.999, "not_null-1": 0.875, "row-1": 1.0}
    for name, bound in least.items():
        (asserted,) = [one for call in checks[name].calls for one in call if callable(one)]
        assert asserted(bound)
        assert not asserted(bound - 1e-12)


@pytest.mark.spark
@pytest.mark.parametrize("nulls", ["unknown", "value"])
def test_the_shares_are_those_of_the_check(spark: Any, nulls: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Deequ measures, by its definitions, from the recorded calls: shares of distinct keys and of kept rows."""
    from tuplewise.engine.spark.local_frames import frame_of

    table, contract = random_table(4, 20), contract_of(RULES, nulls, **TOLERANCES)
    found = checked(contract, table)
    df = frame_of(spark, table)
    compared = 0
    for name, check in checks_of(export_python(contract, None).text, monkeypatch).items():
        call, *where = check.calls
        rows = df.filter(where[0][1]) if where else df
        if call[0] == "satisfies":
            measured = rows.filter(f"({call[1]}) = TRUE").count() / rows.count()
        elif call[0] == "hasDistinctness":
            quoted = [f"`{column}`" for column in call[1]]
            measured = rows.select(*quoted).distinct().count() / rows.count()
        else:
            continue
        (asserted,) = [one for one in call if callable(one)]
        assert asserted(measured) == (not found[name]["failed"]), name
        compared += 1
    assert compared >= 9


def scala_parses(source: str, folder: Path) -> str:
    """What Scala's parser says against a source; "" for a good one."""
    import pyspark

    path = folder / "Rules.scala"
    path.write_text(source, encoding="utf-8")
    jars = sorted(map(str, Path(pyspark.__file__).parent.glob("jars/scala-*.jar")))
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", ":".join(jars), "scala.tools.nsc.Main", "-usejavacp"]
    done = subprocess.run([*command, "-Ystop-after:parser", str(path)], capture_output=True, text=True, cwd=folder)
    return done.stdout + done.stderr


HOSTILE = "x\"); sys.exit(1) // \\\\u0022 \\u0022 é 'quoted'"


@pytest.mark.spark
def test_scala_reads_the_source(tmp_path: Path) -> None:
    rules = {**RULES, "hostile": ("values", "`a b` in ('" + HOSTILE.replace("'", "''") + "')")}
    text = export(contract_of(rules, **TOLERANCES), None).text
    assert scala_parses(text, tmp_path) == ""
    assert "error" in scala_parses(text.replace("Seq(", "Seq((", 1), tmp_path)


def test_the_source_in_scala() -> None:
    found = export(contract_of(RULES, **TOLERANCES | {"row-1": ", severity: warning"}), "the t")
    assert found.left_out == OUT
    assert '    Check(CheckLevel.Error, "key-3").isUnique("d"),\n' in found.text
    distinct = '.hasDistinctness(Seq("k"), (share: Double) => share >= 0.8).where("`k` IS NOT NULL")'
    assert f'Check(CheckLevel.Error, "key-1"){distinct}' in found.text
    kept = '.satisfies("NOT coalesce(`x` > `y`, FALSE)", "row-1", (share: Double) => share >= 1.0)'
    assert f'Check(CheckLevel.Warning, "row-1"){kept}' in found.text
    assert "// fd-1 is left out: Deequ compares no two rows but for keys" in found.text
    assert found.suffix == ".scala"


def test_a_number_of_rows_is_no_share() -> None:
    contract = contract_of({"row-1": RULES["row-1"]}, **{"row-1": ", tolerance: {max_violations: 3}"})
    found = export_python(contract, None)
    assert found.left_out == ("row-1",)
    assert "row-1 is left out: Deequ measures shares" in found.text
    assert ast.parse(found.text).body
    assert export(contract, None).text.count("Check(") == 0
