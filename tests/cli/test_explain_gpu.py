"""`doctor --explain-gpu`: what it says of plans, and what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import TABLE, inside

from tuplewise.engine.cli.explain_gpu import text_parts
from tuplewise.engine.report import text
from tuplewise.spark_conf.plugin import PLUGIN_COORDINATES, rapids_jar


def test_without_the_jar_it_says_where_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUPLEWISE_RAPIDS_JAR", "/nosuch.jar")
    (tmp_path / "t.csv").write_text(TABLE)
    ran = inside(capsys, "doctor", "--explain-gpu", str(tmp_path / "t.csv"))
    assert ran.code == 2
    assert ran.out == ""
    assert "plans can't be explained without the jar of the RAPIDS Accelerator: '/nosuch.jar'" in ran.err
    assert f"mvn dependency:get -Dartifact={PLUGIN_COORDINATES}" in ran.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--sep", ";"], "options for --explain-gpu only: '--sep'"),
        (["--types", "a=text", "--rows", "5"], "options for --explain-gpu only: '--types, --rows'"),
        (["--conf", "a=b"], "options for --cluster or --explain-gpu only: '--conf'"),
        (["--explain-gpu", "t.csv", "--wait", "5"], "options for --cluster only: '--wait'"),
        (["--explain-gpu", "t.csv", "--cluster"], "give one"),
    ],
)
def test_options_that_do_nothing_are_refused(capsys: pytest.CaptureFixture[str], given: list[str], says: str) -> None:
    ran = inside(capsys, "doctor", *given)
    assert ran.code == 2
    assert says in ran.err


def test_text_says_what_stays_on_the_cpu_and_why() -> None:
    on_cpu = [
        {"operator": "AExec", "why": "it is small", "listed": True},
        {"operator": "BExec", "why": "cannot run on GPU because of B", "listed": False},
    ]
    document = {"plans": [{"plan": "load", "on_gpu": 7, "on_cpu": on_cpu}], "notes": ["a note"]}
    shown = text.render(text_parts(document))
    assert "AExec: it is small" in shown
    assert "BExec: unexpected: cannot run on GPU because of B" in shown
    assert "note: a note" in shown
    assert "1 unexpected on the CPU" in shown
    document["plans"] = [{"plan": "load", "on_gpu": 7, "on_cpu": on_cpu[:1]}]
    assert "all but what is known to stay on the CPU" in text.render(text_parts(document))
    assert text_parts({"checks": []}) == []


@pytest.mark.rapids
@pytest.mark.spark
@pytest.mark.slow
def test_plans_of_a_table(tmp_path: Path) -> None:
    if rapids_jar() is None:
        pytest.skip("the RAPIDS jar is neither at TUPLEWISE_RAPIDS_JAR nor in the Maven cache")
    table = tmp_path / "doubled.csv"
    table.write_text('a;b\n1;"x ""1"""\n2;"y ""2"""\n')
    command = [sys.executable, "-m", "tuplewise.engine.cli.main", "doctor", "--explain-gpu", str(table)]
    done = subprocess.run(
        [*command, "--sep", ";", "--format", "json"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {check["name"] for check in document["checks"]} > {"java", "pyspark"}
    plans = {plan["plan"]: plan for plan in document["plans"]}
    assert list(plans) == ["load", "encode", "dc check", "dc discover", "od discover", "ind discover"]
    assert all(plan["on_gpu"] for name, plan in plans.items() if name != "load")
    assert [one["operator"] for one in plans["load"]["on_cpu"]] == ["FileSourceScanExec"]
    assert "doubled quotes" in plans["load"]["on_cpu"][0]["why"]
    assert all(one["listed"] for plan in plans.values() for one in plan["on_cpu"])
