"""The page that reviews a contract, in a real browser: what it hands back is the file with other statuses."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tuplewise.engine.cli.main import run
from tuplewise.engine.contract.file import ContractFile
from tuplewise.engine.contract.review import page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason=f"no headless browser is installed ({', '.join(NAMES)})")

HOSTILE = "</script><script>document.title = 'x'</script><!-- \\u2028 & é 𝒳"
TEXT = f"""\
# {HOSTILE}
tuplewise_contract: 1
tables: {{t: {{path: t.csv}}}}
rules:
- id: one   # the first
  kind: fd
  rule: zip -> city
  english: each `zip` has <img src=x onerror="document.title = 'y'">
  status:   proposed   # yet
  seen: {{rows: 100, exceptions: 2, evidence: 51.5, strength: 0.987, examples: ["row 3: `city` is '<b>'"]}}
- {{id: two, kind: key, rule: [no], status: 'proposed', owner: "</script>"}}
- id: three
  kind: not_null
  rule: no is not null
- id: four
  kind: row
  rule: a <= b
  status: &s proposed
- id: five
  kind: row
  rule: b <= a
  status: "rejected"
"""

STEPS = """
const seen = {}, $ = (s) => document.querySelector(s), $$ = (s) => [...document.querySelectorAll(s)];
const keyed = (key) => new KeyboardEvent("keydown", { key, bubbles: true });
const press = (key, target = document.body) => target.dispatchEvent(keyed(key));
const rows = () => $$(".review tbody tr").filter((row) => row.offsetParent !== null);
const shown = () => rows().map((row) => row.querySelector("code").textContent);
const current = () => $(".current code").textContent;
const settle = () => new Promise((done) => setTimeout(done, 50));
const change = (id, value, event) => { $(id).value = value; $(id).dispatchEvent(new Event(event)); };
let blob = null, name = null;
window.Blob = class { constructor(parts) { this.parts = parts; } };  // a real one is read outside of virtual time
URL.createObjectURL = (given) => { blob = given; return "#"; };
HTMLAnchorElement.prototype.click = function () { name = this.download; };
const handed = async () => { $("#download").click(); await settle(); return [name, blob.parts.join("")]; };
(async () => {
  seen.filtered = shown();
  seen.untouched = await handed();
  seen.first = current();
  press("a");
  seen.second = current();
  press("r");
  seen.decided = $("#decided").textContent;
  seen.two = await handed();
  press("b");
  seen.undone = [current(), $("#decided").textContent, (await handed())[1]];
  change("#filter", "", "change");
  seen.all = shown();
  $$("tr[data-status=accepted] input")[2].click();
  $$("tr[data-status=rejected] input")[0].click();
  seen.clicked = (await handed())[1];
  press("s");
  seen.left = (await handed())[1];
  press("/");
  seen.focused = document.activeElement.id;
  press("r", $("#search"));
  change("#search", "IS not", "input");
  seen.found = [shown(), $("#found").textContent];
  change("#search", "nothing of that kind", "input");
  seen.nothing = [shown(), !$("#nothing").hidden];
  press("a");
  press("Escape", $("#search"));
  seen.again = [shown().length, (await handed())[1]];
  document.body.setAttribute("data-seen", JSON.stringify(seen));
})();
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def browse(text: str, folder: Path, *more: str) -> tuple[str, list[str]]:
    """The page as the browser has made it, and what was said in its console."""
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    command = [
        str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--enable-logging=stderr", "--dump-dom", "--virtual-time-budget=4000", f"--user-data-dir={folder / 'profile'}",
        *more, path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def statuses(text: str) -> str:
    return " ".join(rule.status for rule in ContractFile("rules.yaml", text).contract.rules)


@in_a_browser
def test_the_policy_lets_the_script_run_and_nothing_else(path: Path, tmp_path: Path) -> None:
    shown, console = browse(page(path), tmp_path)
    assert console == []
    assert "<title>rules.yaml · tuplewise</title>" in shown
    assert '<div class="tools">' in shown
    assert "<fieldset>" in shown


@in_a_browser
def test_switches_keys_filter_and_the_file_that_is_handed_back(path: Path, tmp_path: Path) -> None:
    made = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", page(path))
    shown, console = browse(made.replace("</body>", f"<script>{STEPS}</script></body>"), tmp_path)
    assert console == []
    (found,) = re.findall(r'data-seen="(.*?)"', shown, re.DOTALL)
    seen: dict[str, Any] = json.loads(html.unescape(found))
    assert seen["filtered"] == ["zip -> city", "[no]", "a <= b"]
    assert seen["untouched"] == ["rules.yaml", TEXT]
    assert (seen["first"], seen["second"]) == ("zip -> city", "[no]")
    assert seen["decided"] == "1 accepted, 1 rejected here"
    first = TEXT.replace("proposed   # yet", "accepted   # yet")
    assert seen["two"] == ["rules.yaml", first.replace("'proposed'", "'rejected'")]
    assert seen["undone"] == ["[no]", "1 accepted here", first]
    assert len(seen["all"]) == 5
    assert seen["clicked"] == first.replace("- id: three", "- status: rejected\n  id: three").replace(
        '"rejected"', '"accepted"'
    )
    assert statuses(seen["clicked"]) == "accepted proposed rejected proposed accepted"
    assert statuses(seen["left"]) == "accepted proposed rejected proposed rejected"  # the last one was current
    assert seen["focused"] == "search"
    assert seen["found"] == [["no is not null"], "1 found"]
    assert seen["nothing"] == [[], True]
    assert seen["again"] == [5, seen["left"]]


@in_a_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(width: int, path: Path, tmp_path: Path) -> None:
    made = html.escape(re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", page(path)))
    step = "const d = document.querySelector('iframe').contentDocument.documentElement;"
    step += "document.title = d.scrollWidth + ' in ' + d.clientWidth;"
    frame = f'<iframe style="border:0" width="{width}" height="800" srcdoc="{made}"></iframe>'
    shown, _ = browse(f"{frame}<script>onload = () => {{ {step} }};</script>", tmp_path)
    assert f"<title>{width} in {width}</title>" in shown


def test_nothing_of_the_file_is_markup_and_the_page_needs_nothing_else(path: Path) -> None:
    made = page(path)
    assert made.count("<script") == 2
    assert "<img" not in made
    assert not re.search(r"https?:|@import|src=\"|href=\"(?!#)", made)
    (data,) = re.findall(r'<script type="application/json" id="file">(.*?)</script>', made, re.DOTALL)
    file = json.loads(data)
    pieces = [file["pieces"][0]]
    for status, piece in zip(file["statuses"], file["pieces"][1:], strict=True):
        pieces += [status["left"], piece]
    assert "".join(pieces) == TEXT
    assert "Its status is shared with other rules" in made


def test_the_command_writes_the_page(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "review.html"
    assert run(["review", str(path), "-o", str(written)]) == 0
    assert written.read_text(encoding="utf-8") == page(path)
    assert path.read_text(encoding="utf-8") == TEXT
    assert run(["review", str(tmp_path / "none.yaml"), "-o", str(written)]) == 2
    assert "there is no contract" in capsys.readouterr().err
