"""The review of proposed rules: what is decided is in the file at once, and nothing else of it changes."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.cli.main import run
from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.contract.file import ContractFile, status_places
from tuplewise.engine.contract.review import Review, decide

TEXT = """\
# Kept by the data team
tuplewise_contract: 1
tables: {t: {path: t.csv}}   # one table
rules:
- id: one   # the first
  kind: fd
  rule: zip -> city
  status:   proposed   # yet
  seen: {rows: 100, exceptions: 2, evidence: 51.5, strength: 0.987,
         examples: ["row 3: `city` is 'X'", "row 9: `city` is 'Y'"]}
- {id: two, kind: key, rule: [no], status: 'proposed', owner: Ada}

- id: three
  kind: not_null
  rule: no is not null
- kind: row
  id: four
  rule: a <= b
  status: "proposed"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(TEXT)
    return path


def statuses(contract: Contract) -> dict[str, str]:
    return {rule.id: rule.status for rule in contract.rules}


def of_file(path: Path) -> dict[str, str]:
    return statuses(ContractFile(path).contract)


def test_each_decision_is_in_the_file_and_all_else_stays(path: Path) -> None:
    review = Review(path)
    assert review.count == 3
    assert review.rule is not None
    assert (review.rule.id, review.number) == ("one", 1)
    review.decide("accepted")
    first = TEXT.replace("proposed   # yet", "accepted   # yet")
    assert path.read_text() == first
    assert review.rule.id == "two"
    review.decide("rejected")
    assert path.read_text() == first.replace("'proposed'", "'rejected'")
    review.skip()
    assert review.rule is None
    assert review.counts() == {"accepted": 1, "rejected": 1, "skipped": 1}
    assert [review.back(), review.number] == [True, 3]
    assert [review.back(), review.number] == [True, 2]
    assert path.read_text() == first
    assert [review.back(), review.back(), review.number] == [True, False, 1]
    assert path.read_text() == TEXT
    assert not review.counts()


def test_what_an_editor_changed_meanwhile_is_kept(path: Path) -> None:
    review = Review(path)
    path.write_text(TEXT.replace("# the first", "# edited").replace('"proposed"', "rejected"))
    review.decide("accepted")
    review.decide("rejected")
    assert review.rule is None  # the last was rejected in the editor
    assert "# edited" in path.read_text()
    assert of_file(path) == {"one": "accepted", "two": "rejected", "three": "accepted", "four": "rejected"}


def test_a_rule_that_was_removed_meanwhile_is_passed_over(path: Path) -> None:
    review = Review(path)
    left = TEXT[: TEXT.index("- id: one")] + TEXT[TEXT.index("- {id: two") :]
    path.write_text(left)
    with pytest.raises(tw.InputError, match=r"no rule of the id in contract .*: 'one'\. Known: 'two', 'three', 'four'"):
        review.decide("accepted")
    assert path.read_text() == left
    assert review.rule is not None
    assert (review.rule.id, review.counts()) == ("two", {})


def test_a_file_that_is_broken_meanwhile_is_an_error_and_stays(path: Path) -> None:
    review = Review(path)
    path.write_text("rules: [")
    for act in (lambda: review.decide("accepted"), lambda: review.decide("accepted")):
        with pytest.raises(tw.InputError, match="contract is no YAML"):
            act()
    assert path.read_text() == "rules: ["
    path.write_text(TEXT)
    review.decide("accepted")
    assert of_file(path)["one"] == "accepted"


def test_places_of_statuses_of_every_spelling() -> None:
    text = "\ufeff" + TEXT.replace("\n", "\r\n").replace("'proposed'", "&s proposed").replace('"proposed"', "*s")
    places = {place.rule_id: place for place in status_places(text)}
    assert list(places) == ["one", "three"]  # an anchor and its alias are one place
    one, three = places["one"], places["three"]
    assert (text[one.start : one.end], one.written("rejected")) == ("proposed", "rejected")
    assert three.written("rejected") == "status: rejected\r\n  "
    assert text[three.end :].startswith("id: three")


def test_every_status_is_changed_in_its_spelling(path: Path) -> None:
    kept = ContractFile(path)
    kept.set_statuses(dict.fromkeys(["one", "two", "three", "four"], "rejected"))
    kept.save()
    written = path.read_text()
    assert set(of_file(path).values()) == {"rejected"}
    assert written == (
        TEXT.replace("proposed", "rejected").replace("- id: three", "- status: rejected\n  id: three")
    )
    path.write_text(TEXT.replace("[no], status: 'proposed', owner: Ada", "[no]"))
    kept = ContractFile(path)
    kept.set_status("two", "rejected")
    assert "- {status: rejected, id: two, kind: key, rule: [no]}\n" in kept.text()


def test_a_status_that_rules_share_is_changed_for_one_of_them(path: Path) -> None:
    path.write_text(TEXT.replace("'proposed'", "&s proposed").replace('"proposed"', "*s"))
    kept = ContractFile(path)
    kept.set_status("four", "accepted")
    kept.save()
    assert of_file(path) == {"one": "proposed", "two": "proposed", "three": "accepted", "four": "accepted"}
    assert "# the first" in path.read_text()


def test_line_ends_of_windows_stay(path: Path) -> None:
    text = TEXT.replace("\n", "\r\n").encode()
    path.write_bytes(text)
    Review(path).decide("accepted")
    assert path.read_bytes() == text.replace(b"proposed   # yet", b"accepted   # yet")


@pytest.mark.parametrize(
    ("accept", "reject", "found"),
    [
        (["all"], [], "accepted accepted accepted accepted"),
        (["all"], ["two"], "accepted rejected accepted accepted"),
        (["four"], ["all"], "rejected rejected accepted accepted"),
        (["one", "one"], ["three"], "accepted proposed rejected proposed"),
    ],
)
def test_decisions_without_questions(path: Path, accept: list[str], reject: list[str], found: str) -> None:
    decide(path, accept, reject)
    assert " ".join(of_file(path).values()) == found


@pytest.mark.parametrize(
    ("accept", "reject", "said"),
    [
        (["all"], ["all"], "all rules can't be accepted and rejected"),
        (["one"], ["two", "one"], "a rule can't be accepted and rejected: 'one'"),
        (["one", "fore"], [], r"no rule of the id in contract .*: 'fore'\. Did you mean 'four'"),
    ],
)
def test_faults_of_decisions_write_nothing(path: Path, accept: list[str], reject: list[str], said: str) -> None:
    with pytest.raises(tw.InputError, match=said):
        decide(path, accept, reject)
    assert path.read_text() == TEXT


# ---------------------------------------------------------------- the command


class Terminal:
    """The command in a terminal of 100 columns."""

    def __init__(self, *argv: str) -> None:
        self._ours, theirs = pty.openpty()
        self._read = b""
        environment = {**os.environ, "COLUMNS": "100", "LINES": "40", "TERM": "xterm"}
        command = [sys.executable, "-m", "tuplewise.engine.cli.main", "review", *argv]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
        os.close(theirs)

    def until(self, text: str, seconds: float = 60) -> str:
        """What is printed up to a text, without colours; all, where the process ends before that."""
        shown, end = "", time.monotonic() + seconds
        while text not in shown:
            left = end - time.monotonic()
            assert left > 0, shown
            if select.select([self._ours], [], [], left)[0]:
                try:
                    self._read += os.read(self._ours, 4096)
                except OSError:  # it has ended
                    break
            shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._read.decode(errors="replace"))
        self._read = b""
        return shown

    def keys(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def code(self) -> int:
        code = self.process.wait(timeout=60)
        os.close(self._ours)
        return code

    def waits(self) -> None:
        """Wait until a key is asked for: keys that come before it are thrown away with the terminal's line."""
        import termios

        end = time.monotonic() + 30
        while termios.tcgetattr(self._ours)[3] & termios.ICANON:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_review_in_the_terminal(path: Path) -> None:
    terminal = Terminal(str(path))
    shown = terminal.until("q quit")
    for said in (
        "1 of 3 · t · fd", "zip -> city", "100 rows, 2 exceptions (2 %), evidence 52, strength 0.987",
        "row 3: `city` is 'X'", "row 9: `city` is 'Y'", "allowed  no exception",
    ):  # fmt: skip
        assert said in shown
    terminal.waits()
    terminal.keys("a")
    shown = terminal.until("q quit")
    assert re.search(r"accepted\s+2 of 3 · t · key", shown)
    assert "owner    Ada" in shown
    assert of_file(path)["one"] == "accepted"  # before the next key
    terminal.waits()
    terminal.keys("r")
    assert re.search(r"rejected\s+3 of 3 · t · row", terminal.until("q quit"))
    terminal.waits()
    terminal.keys("b")
    assert "2 of 3" in terminal.until("q quit")
    assert of_file(path)["two"] == "proposed"
    terminal.waits()
    terminal.keys("s")
    terminal.until("q quit")
    terminal.waits()
    terminal.keys("q")
    assert f"1 accepted, 1 skipped; 2 rules still proposed in '{path}'" in terminal.until("nothing more").replace(
        "\r\n", ""
    )
    assert terminal.code() == 0
    assert path.read_text() == TEXT.replace("proposed   # yet", "accepted   # yet")


def test_other_keys_do_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = iter(["b", "x", "\x1b[A", "aa", "", "R", "A", "q"])
    monkeypatch.setattr("click.getchar", lambda: next(keys))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run(["review", str(path)]) == 0
    assert of_file(path) == {"one": "rejected", "two": "accepted", "three": "accepted", "four": "proposed"}
    assert "there is nothing to undo" in capsys.readouterr().out


def test_ctrl_c_ends_a_review(path: Path) -> None:
    terminal = Terminal(str(path))
    terminal.until("q quit")
    terminal.waits()
    terminal.keys("a")
    terminal.until("q quit")
    terminal.waits()
    terminal.keys("\x03")
    assert "interrupted" in terminal.until("nothing more")
    assert terminal.code() == 130
    assert of_file(path)["one"] == "accepted"


def test_what_cannot_be_written_is_said_and_the_rule_stays(path: Path) -> None:
    terminal = Terminal(str(path))
    terminal.until("q quit")
    path.write_text("rules: [")
    terminal.waits()
    terminal.keys("a")
    assert "not written: contract is no YAML" in terminal.until("line 1")
    path.write_text(TEXT)
    terminal.waits()
    terminal.keys("r")
    assert "rejected" in terminal.until("q quit")
    assert of_file(path)["one"] == "rejected"
    terminal.waits()
    terminal.keys("\x04")  # the end of input is the end of the review
    assert "1 rejected" in terminal.until("nothing more")
    assert terminal.code() == 0


def test_a_kill_leaves_the_file_before_or_after(path: Path) -> None:
    program = (
        "import sys; from tuplewise.engine.contract.review import Review\n"
        "review = Review(sys.argv[1]); print(flush=True)\n"
        "while True:\n    review.decide('accepted'); review.back()"
    )
    after = TEXT.replace("proposed   # yet", "accepted   # yet")
    for wait in (0.05, 0.11, 0.23):
        path.write_text(TEXT)
        with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
        assert path.read_text() in (TEXT, after)


def test_without_a_terminal_an_error_says_what_to_do(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["review", str(path)]) == 2
    assert "this is no terminal: --accept IDS and --reject IDS decide without questions" in capsys.readouterr().err
    assert path.read_text() == TEXT


def test_the_command_decides_without_questions(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["review", str(path), "--accept", "all", "--reject", "two,three"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"2 accepted, 2 rejected; 0 rules still proposed in '{path}'\n")
    assert of_file(path) == {"one": "accepted", "two": "rejected", "three": "rejected", "four": "accepted"}
    assert run(["review", str(path), "--accept", "nine"]) == 2
    assert "no rule of the id" in capsys.readouterr().err


# ---------------------------------------------------------------- what is shown


def test_a_profile_keeps_rows_that_break_what_it_proposes(tmp_path: Path) -> None:
    rows = [(i, 10_000 + i % 30, f"City {i % 30 // 2}") for i in range(600)]
    wrong = {17, 101, 250, 399, 577}
    cities = ["Nowhere" if i in wrong else city for i, _, city in rows]
    table = pd.DataFrame({"no": [r[0] for r in rows], "zip": [r[1] for r in rows], "city": cities})
    csv, path = tmp_path / "t.csv", tmp_path / "rules.yaml"
    table.to_csv(csv, index=False)
    assert run(["profile", str(csv), "--contract", str(path), "-o", str(tmp_path / "p.json")]) == 0
    rules = {rule.text: rule for rule in ContractFile(path).contract.rules}
    seen = rules["zip -> city"].seen
    assert seen is not None
    assert seen["exceptions"] == len(wrong)
    assert len(seen["examples"]) == 3
    for told in seen["examples"]:
        found = re.fullmatch(r"row (\d+): `city` is 'Nowhere'; 19 of 20 rows with `zip` (\d+) have 'City (\d+)'", told)
        assert found is not None
        row, zip_, city = map(int, found.groups())
        assert row in wrong
        assert (zip_, city) == (10_000 + row % 30, row % 30 // 2)
    assert "examples" not in (rules["[no]"].seen or {})
    written = path.read_text()
    assert run(["profile", str(csv), "--contract", str(path), "-o", str(tmp_path / "p.json")]) == 0
    assert path.read_text() == written
