"""Pages of results in a real browser: no errors, and search, sorting, folding and copying work."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import profile_documents as documents
import pytest

from tuplewise.engine.report import profile_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no headless browser is installed ({', '.join(NAMES)})")

STEPS = """
const seen = {}, $ = (s) => document.querySelector(s), $$ = (s) => [...document.querySelectorAll(s)];
const shown = (s) => $$(s).filter((one) => one.offsetParent !== null);
const rules = () => shown("td.rule").map((cell) => cell.dataset.key);
const type = (text) => { $("#search").value = text; $("#search").dispatchEvent(new Event("input")); };
const head = (label) => $$(".rules")[1].querySelectorAll("thead button")[label];
const strengths = () => [...$$(".rules")[1].tBodies[0].rows].map((row) => parseFloat(row.cells[3].textContent));
const press = (key, target) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const settle = () => new Promise((done) => setTimeout(done, 50));
const clipboard = (value) => Object.defineProperty(navigator, "clipboard", { configurable: true, value });
let copied = null;
(async () => {
  seen.all = rules().length;
  press("/", document.body);
  seen.focused = document.activeElement.id;
  type("ZIP   city");
  seen.found = rules();
  seen.counted = $("#found").textContent;
  seen.headings = shown("h2").map((one) => one.textContent);
  type("nothing of that kind");
  seen.nothing = [rules().length, !$("#nothing").hidden];
  press("Escape", $("#search"));
  seen.again = rules().length;

  seen.before = head(3).parentElement.getAttribute("aria-sort");
  head(3).click();
  seen.falling = [head(3).parentElement.getAttribute("aria-sort"), ...strengths()];
  head(3).click();
  seen.rising = [head(3).parentElement.getAttribute("aria-sort"), ...strengths()];
  seen.said = $("#said").textContent;
  head(0).click();
  seen.ranks = [...$$(".rules")[1].tBodies[0].rows].map((row) => parseInt(row.cells[0].textContent));

  seen.folded = $$("details").filter((one) => one.open).length;
  $("#unfold").click();
  seen.unfolded = $$("details").every((one) => one.open);
  $("#unfold").click();
  seen.refolded = $$("details").filter((one) => one.open).length;
  dispatchEvent(new Event("beforeprint"));
  seen.printed = $$("details").every((one) => one.open);
  dispatchEvent(new Event("afterprint"));
  seen.afterwards = $$("details").filter((one) => one.open).length;

  const button = $$(".copies")[0].querySelectorAll("button")[1];
  clipboard({ writeText: async (text) => { copied = text; } });
  button.click();
  await settle();
  seen.copied = copied;
  seen.answer = button.dataset.said;
  clipboard(undefined);
  document.execCommand = () => { copied = "by hand: " + document.activeElement.value; return true; };
  button.click();
  await settle();
  seen.by_hand = copied;
  document.execCommand = () => false;
  button.click();
  await settle();
  seen.left = $("textarea").value;
  document.body.setAttribute("data-seen", JSON.stringify(seen));
})();
"""


def run(path: Path, folder: Path, *more: str) -> tuple[str, list[str]]:
    """The page as the browser has made it, and what was said in its console."""
    done = subprocess.run(
        [
            str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--enable-logging=stderr", "--dump-dom", "--virtual-time-budget=4000",
            f"--user-data-dir={folder / 'profile'}", *more, path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("made", [documents.typical, documents.hostile, documents.empty])
def test_no_errors_and_the_policy_lets_the_script_run(made: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(profile_page.page(made()))
    shown, console = run(path, tmp_path)
    assert console == []
    assert '<div class="tools">' in shown  # it is hidden where the script doesn't run


def test_a_foreign_script_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    foreign = "<script>document.title = 'x'</script></main>"
    path.write_text(profile_page.page(documents.small()).replace("</main>", foreign))
    shown, console = run(path, tmp_path)
    assert "<title>x</title>" not in shown
    assert len(console) == 1
    assert "Content Security Policy" in console[0]


def test_search_sorting_folding_and_copying(tmp_path: Path) -> None:
    document = documents.typical()
    made = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", profile_page.page(document))
    path = tmp_path / "page.html"
    path.write_text(made.replace("</body>", f"<script>{STEPS}</script></body>"))
    shown, console = run(path, tmp_path, "--window-size=1280,900")
    assert console == []
    (found,) = re.findall(r'data-seen="(.*?)"', shown, re.DOTALL)
    seen = json.loads(html.unescape(found))
    assert seen["all"] == seen["again"] == 25
    assert seen["focused"] == "search"
    assert "zip -> city" in seen["found"]
    assert "state -> rate" not in seen["found"]
    assert len(seen["found"]) < 10
    assert seen["counted"].endswith(f" of {25 + 3 + 21}")
    assert "Orders" not in seen["headings"]
    assert seen["nothing"] == [0, True]
    strengths = [rule["strength"] for rule in document["result"]["rules"] if rule["kind"] == "fd"]
    assert seen["before"] == "none"
    assert seen["falling"] == ["descending", *(pytest.approx(s, abs=1e-3) for s in sorted(strengths, reverse=True))]
    assert seen["rising"] == ["ascending", *(pytest.approx(s, abs=1e-3) for s in sorted(strengths))]
    assert seen["said"] == "Sorted by strength, ascending"
    assert seen["ranks"] == sorted(seen["ranks"])
    assert [seen[when] for when in ("folded", "unfolded", "refolded")] == [0, True, 0]
    assert [seen[when] for when in ("printed", "afterwards")] == [True, 0]
    sql = document["result"]["rules"][0]["sql"]
    assert (seen["copied"], seen["answer"]) == (sql, "copied")
    assert seen["by_hand"] == f"by hand: {sql}"
    assert seen["left"] == sql


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(width: int, tmp_path: Path) -> None:
    """A window of a browser is at least 500 wide: the page stands in a frame."""
    for made in (documents.typical, documents.hostile):
        page = html.escape(re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", profile_page.page(made())))
        step = "const d = document.querySelector('iframe').contentDocument.documentElement;"
        step += "document.title = d.scrollWidth + ' in ' + d.clientWidth;"
        path = tmp_path / "frame.html"
        path.write_text(
            f'<iframe style="border:0" width="{width}" height="800" srcdoc="{page}"></iframe>'
            f"<script>onload = () => {{ {step} }};</script>"
        )
        shown, _ = run(path, tmp_path)
        assert f"<title>{width} in {width}</title>" in shown
