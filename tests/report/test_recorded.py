"""What results hand on, in every format, held against files of what they handed on before.

With TUPLEWISE_RECORD=1 in the environment the files are written anew: do so where an output is meant to change, and
look at the difference. Seconds, sizes, versions, styles and scripts are left out of what is compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import tuplewise as tw
from tools import json_page
from tuplewise.engine.cli import output
from tuplewise.engine.cli.main import run

RECORDED = Path(__file__).parent / "recorded"
SCHEMA = Draft202012Validator(json_page.schema())
RECORDING = "TUPLEWISE_RECORD" in os.environ

TABLES = {
    "people.csv": 'id,zip,city,pay,"we, ird"\n1,01,A,10,"x ""q"""\n2,01,A,20,<b>&\n3,02,B,20,x\n4,03,B,35,\n'
    "5,02,C,40,é\n6,03,B,35,x\n",
    "days.csv": "year,month,quarter,day\n2025,1,1,1\n2025,3,1,2\n2025,4,2,3\n2026,1,1,4\n2026,7,3,5\n,8,3,6\n",
    "orders.csv": "no,customer,amount\n1,Ann,1.5\n2,Bob,\n3,Ann,2.25\n4,Zoë,3\n5,,4\n",
    "customers.csv": "name,since\nAnn,2024-01-01\nBob,2024-02-01\nEve,\n",
    "more.csv": 'id,zip,city,pay,"we, ird"\n7,01,B,50,y\n8,04,D,60,\n',
    "changed.csv": "row_id,id,zip,city,pay,\"we, ird\"\n0,1,09,A,10,z\n",
    "keyed.csv": "id,zip,city\n7,01,B\n8,04,D\n",
    "gone.csv": "id\n8\n",
    "new_orders.csv": "no,customer,amount\n6,Max,1\n",
    "zips.csv": "no,zip,city,state\n" + "".join(
        f"{i},Z{i % 40},{'Wrong' if i == 7 else f'City {i % 40 // 2}'},{'S' if i % 40 < 20 else 'T'}\n"
        for i in range(400)
    ),
    "zip.csv": "zip,since\n" + "".join(f"Z{i},{2000 + i % 9}\n" for i in range(40)),
    "rules.txt": "zip -> city\nnot(t.id == u.id)\nnot(t.pay > 30 and t.city == 'B')\n"
    "not(t.zip != u.zip and t.pay < u.pay)\n",
}  # fmt: skip
ALL = ("json", "csv", "sql", "text", "html")
STATE = ("json", "text")


@dataclass(frozen=True)
class Case:
    """A command, the formats that it is recorded in, and commands that run before it."""

    name: str
    command: str
    forms: Sequence[str] = ALL
    before: Sequence[str] = ()


BUILT = ("dc init state people.csv --device cpu",)
KEYED = ("dc init keyed people.csv --device cpu --key id --columns id,zip,city",)
INSERTED = (*BUILT, "dc insert state more.csv --device cpu")
INDS = ("ind init inds orders.csv customers.csv",)
TWO = "orders.csv customers.csv --device cpu"
CASES = [
    Case("dc_discover", "dc discover people.csv --device cpu --limit 4"),
    Case("dc_discover_error", "dc discover people.csv --device cpu --error 0.1 --rank-by coverage --limit 5 "
         "--columns zip,city,pay --nulls value", ("json", "csv", "text", "html")),
    Case("dc_discover_lift", "dc discover people.csv --device cpu --error 0.3 --error-measure lift "
         "--columns zip,city,pay", ("json", "csv", "text", "html")),
    Case("dc_discover_sampled", "dc discover zips.csv --device cpu --sample-pairs 500 --columns zip,city,state "
         "--limit 4", ("json", "csv", "text", "html")),
    Case("dc_discover_hybrid", "dc discover zips.csv --device cpu --algorithm hybrid --columns zip,city,state -v",
         ("text", "html")),
    Case("dc_discover_space", "dc discover people.csv --device cpu --explain-space", STATE),
    Case("dc_discover_none", "dc discover people.csv --device cpu --columns zip --rows 0", ALL),
    Case("dc_check", "dc check people.csv --device cpu --rules rules.txt --pairs 2"),
    Case("dc_check_key", "dc check people.csv --device cpu --rules rules.txt --key id -v",
         ("json", "csv", "sql", "text")),
    Case("dc_check_count", "dc check people.csv --device cpu --rules rules.txt --count-only --fail-on 50%",
         ("json", "csv", "text")),
    Case("dc_check_explain", "dc check people.csv --device cpu --rules rules.txt --explain", ("json", "text")),
    Case("fd", "fd discover people.csv --device cpu"),
    Case("fd_error", "fd discover people.csv --device cpu --error 0.2 --limit 3", ("json", "csv", "text", "html")),
    Case("fd_mu", "fd discover people.csv --device cpu --error 0.2 --error-measure mu --rank-by size --limit 3 -v",
         ("json", "csv", "text", "html")),
    Case("key", "key discover people.csv --device cpu"),
    Case("key_error", "key discover people.csv --device cpu --error 0.4 --limit 2", ("json", "csv", "text", "html")),
    Case("key_none", "key discover people.csv --device cpu --columns zip,city"),
    Case("od", "od discover days.csv --device cpu"),
    Case("od_error", "od discover days.csv --device cpu --error 0.2 --limit 2 -v", ("json", "csv", "text", "html")),
    Case("od_lexicographic", "od discover days.csv --device cpu --lexicographic 2 --limit 3"),
    Case("od_check", "od check days.csv --device cpu --od 'year, month -> quarter' --od 'quarter -> month' "
         "--od 'day -> year' --od 'year -> year'", ("json", "csv", "text")),
    Case("od_check_against", "od check --against ods.json --od 'month -> quarter' --od 'quarter -> month'",
         ("json", "csv", "text"), ("od discover days.csv --device cpu -o ods.json",)),
    Case("od_order_by", "od order-by 'quarter, month desc' --against ods.json", ("json", "text"),
         ("od discover days.csv --device cpu -o ods.json",)),
    Case("ind", f"ind discover {TWO}"),
    Case("ind_error", f"ind discover {TWO} --error 0.4 --limit 1 -v"),
    Case("ind_text", f"ind discover {TWO} --as-text", ("json", "sql", "text")),
    Case("ind_check", f"ind check {TWO} --ind 'orders.customer <= customers.name' --ind 'orders.no <= orders.no' "
         "--ind 'customers.since <= orders.customer' --examples 1", ("json", "csv", "sql", "text")),
    Case("ind_check_two", f"ind check {TWO} --as-text --error 0.5 -v "
         "--ind 'orders[no, customer] <= customers[since, name]'", ("json", "csv", "sql", "text")),
    Case("profile", "profile zips.csv zip.csv --device cpu -v", ALL),
    Case("profile_one", "profile people.csv --device cpu", ("csv", "text", "html")),
    Case("dc_init", *BUILT, STATE),
    Case("dc_init_key", *KEYED, STATE),
    Case("dc_insert", "dc insert state more.csv --device cpu", STATE, BUILT),
    Case("dc_insert_key", "dc insert keyed keyed.csv --device cpu -v", STATE, KEYED),
    Case("dc_update", "dc update state changed.csv --device cpu", STATE, BUILT),
    Case("dc_delete", "dc delete keyed --keys gone.csv --device cpu", STATE,
         (*KEYED, "dc insert keyed keyed.csv --device cpu")),
    Case("dc_delete_ids", "dc delete state --ids 0,2 --device cpu", STATE, BUILT),
    Case("dc_show", "dc show state --limit 4", ALL, INSERTED),
    Case("dc_show_earlier", "dc show state --revision 0 --limit 3", ("json", "csv", "text", "html"), INSERTED),
    Case("dc_show_since", "dc show state --since 0", STATE, INSERTED),
    Case("dc_show_key", "dc show keyed --limit 2", ("sql", "text"), KEYED),
    Case("ind_init", *INDS, STATE),
    Case("ind_apply", "ind apply inds --table orders --insert new_orders.csv", STATE, INDS),
    Case("ind_apply_delete", "ind apply inds --table orders --delete new_orders.csv", STATE,
         (*INDS, "ind apply inds --table orders --insert new_orders.csv")),
    Case("ind_show", "ind show inds", ALL, INDS),
]  # fmt: skip


def test_files_are_those_of_cases() -> None:
    names = {*(case.name for case in CASES), *(f"python_{name}" for name in PYTHON)}
    assert {path.stem for path in RECORDED.iterdir()} == names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    for name, content in TABLES.items():
        (made / name).write_text(content, encoding="utf-8")
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_command_line(
    case: Case, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    widths: list[int | None] = [None]
    monkeypatch.setattr(output, "terminal", lambda path: {"width": widths[0], "color": False})
    outputs = {}
    for number, (form, width) in enumerate(_of(case.forms)):
        within = tmp_path / str(number)
        within.mkdir()
        for table in folder.iterdir():
            (within / table.name).symlink_to(table)
        monkeypatch.chdir(within)
        for one in case.before:
            assert run([*shlex.split(one), "--quiet"]) == 0
        widths[0] = width
        capsys.readouterr()
        code = run([*shlex.split(case.command), "--quiet", "--format", form])
        out, err = capsys.readouterr()
        assert not err
        if form == "json":
            SCHEMA.validate(json.loads(out))
        outputs[form if width is None else f"{form} {width}"] = f"exit code {code}\n{out}"
    _hold(case.name, outputs)


def _of(forms: Sequence[str]) -> list[tuple[str, int | None]]:
    return [(form, width) for form in forms for width in ((80, 120) if form == "text" else (None,))]


def two_tables() -> list[str]:
    return ["orders.csv", "customers.csv"]


RULES = ["zip -> city", "not(t.pay > 30 and t.city == 'B')", "not(t.id == u.id)"]
PYTHON: dict[str, Callable[[], Any]] = {
    "dcs": lambda: tw.discover_dcs("people.csv", device="cpu"),
    "dcs_sampled": lambda: tw.discover_dcs("zips.csv", device="cpu", sample_pairs=500),
    "dcs_lift": lambda: tw.discover_dcs("people.csv", device="cpu", error=0.3, error_measure="lift"),
    "fds": lambda: tw.discover_fds("people.csv", device="cpu", error=0.2),
    "keys": lambda: tw.discover_keys("people.csv", device="cpu"),
    "ods": lambda: tw.discover_ods("days.csv", device="cpu", lexicographic=2),
    "inds": lambda: tw.discover_inds(two_tables(), device="cpu", error=0.4),
    "check": lambda: tw.check("people.csv", RULES, device="cpu"),
    "check_key": lambda: tw.check("people.csv", RULES, device="cpu", key=["id"]),
    "check_counted": lambda: tw.check("people.csv", RULES, device="cpu", count_only=True),
    "check_ods": lambda: tw.check_ods("days.csv", ["quarter -> month", "month -> quarter"], device="cpu"),
    "check_inds": lambda: tw.check_inds(two_tables(), "orders.customer <= customers.name", device="cpu"),
    "profile": lambda: tw.profile(["zips.csv", "zip.csv"], device="cpu"),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    result = PYTHON[name]()
    frame = result.to_pandas()
    whole = result.to_dict()
    assert json.loads(result.to_json()) == json.loads(json.dumps(whole))
    outputs = {
        "repr": repr(result),
        "notebook": result._repr_html_(),
        "dtypes": frame.dtypes.to_string(),
        "frame": frame.head(8).to_csv(index=False),
        "keys": ", ".join([*whole, *whole["result"]]),
        "text": result.to_text(),
    }
    if name not in ("check_counted", "check_inds"):
        outputs |= _partial(result)
    _hold(f"python_{name}", outputs)


def _partial(result: Any) -> dict[str, str]:
    """What results say where a limit ended the work."""
    partial = type(result)(replace(result._found, partial=True), notes=["cut `here`"])
    assert partial.partial
    page = partial.to_html() if hasattr(partial, "to_html") else ""
    said = re.findall(r'<p class="partial">.*?</p>', page, re.DOTALL)
    text = [line for line in partial.to_text(verbose=True).splitlines() if line.startswith(("PARTIAL", "note"))]
    noted = [line for line in partial._repr_html_().splitlines() if "artial" in line or "cut" in line]
    return {"partial": "\n".join([*said, *text, *noted, repr(partial).splitlines()[0]])}


def _hold(name: str, outputs: dict[str, str]) -> None:
    """Compare with what was recorded, or record."""
    path = RECORDED / f"{name}.txt"
    settled = {form: _settled(text) for form, text in outputs.items()}
    if settled.get("text 120") == settled.get("text 80", ""):
        settled["text 120"] = "as text 80\n"
    said = "".join(f"=== {form}\n{text}\n" for form, text in settled.items())
    if RECORDING:
        path.write_text(said, encoding="utf-8", newline="")
    assert said == path.read_bytes().decode()


_CHANGING = [
    (r'"timings_seconds": \{[^}]*\}', '"timings_seconds": {}'),
    (r'"peak_rss_bytes": \d+', '"peak_rss_bytes": 0'),
    (r'"(seconds|state_bytes)": [\d.e-]+', r'"\1": 0'),
    (r'"(pair|row)": \d+\.\d+(e-\d+)?', r'"\1": 0'),
    (r'"version": "[^"]*"', '"version": ""'),
    (r"<style>.*?</style>", "<style></style>"),
    (r"<script>.*?</script>", "<script></script>"),
    (r"'sha256-[^']*'|&#39;sha256-[^&]*&#39;", "sha256"),
    (r"<dt><bdi>version</bdi></dt><dd><bdi>[^<]*", "<dt><bdi>version</bdi></dt><dd><bdi>"),
    (r"<footer><bdi>tuplewise [^,]*", "<footer><bdi>tuplewise"),
    (r"\d+\.\d\d s\b", "0 s"),
    (r"(\s)\d+\.\d\d(?=[,)])", r"\g<1>0"),
    (r"(?m)(<div><dt><bdi>[\w ]+</bdi></dt><dd><bdi>0 s</bdi></dd></div>)+", "<dt>seconds</dt>"),
    (r"about \d+\.\d+ s", "about 0 s"),
    (r"takes up to [\d,]+", "takes up to 0"),
]


_LONG = [
    r"<!doctype html>.*?<body>",
    r'  "tables": \[\n.*?\n  \]',
    r'  "options": \{\n.*?\n  \}',
    r'<section [^>]*"columns-section">.*</main>',
]


def _settled(text: str) -> str:
    """Text without what is never the same twice; of what all results say alike, a digest."""
    for pattern, instead in _CHANGING:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    if re.match(r"(exit code \d\n)?[\w,]+,seconds\n", text):
        text = re.sub(r",[\d.e-]+$", ",0", text, flags=re.MULTILINE)
    for pattern in _LONG:
        text = re.sub(pattern, lambda found: hashlib.sha256(found[0].encode()).hexdigest(), text, flags=re.DOTALL)
    return text
