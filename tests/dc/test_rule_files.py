"""Files of rules: lines and JSON, and all their faults in one error."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import tuplewise as tw
from tuplewise.engine.dc.constraint import NULL, Constant, DenialConstraint, Predicate
from tuplewise.engine.dc.rule_text import read_rule, read_rule_file
from tuplewise.engine.dc.rule_text.files import rule_of_triples
from tuplewise.engine.errors import RuleError

LINES = """# rules of the zip table

not(t.zip == u.zip and t.city != u.city)
   # and the key
t1&t2&EQ(t1.id,t2.id)
zip -> city, `the state`; not(t.name == '# no comment')
[zip, city] -> id
{zip} -> id
"""
FOUND = [
    ("not(t.city != u.city and t.zip == u.zip)", "rules.txt line 3"),
    ("not(t.id == u.id)", "rules.txt line 5"),
    ("not(t.city != u.city and t.zip == u.zip)", "rules.txt line 6"),
    ("not(t.`the state` != u.`the state` and t.zip == u.zip)", "rules.txt line 6"),
    ("not(t.name == '# no comment')", "rules.txt line 6"),
    ("not(t.city == u.city and t.id != u.id and t.zip == u.zip)", "rules.txt line 7"),
    ("not(t.id != u.id and t.zip == u.zip)", "rules.txt line 8"),
]


def write(folder: Path, data: bytes | str, name: str = "rules.txt") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize(
    "data",
    [LINES.encode(), b"\xef\xbb\xbf" + LINES.encode(), LINES.replace("\n", "\r\n").encode(), LINES[:-1].encode()],
)
def test_lines(tmp_path: Path, data: bytes) -> None:
    assert [(r.rule, place) for r, place in read_rule_file(write(tmp_path, data))] == FOUND


def test_a_list_of_names_in_the_first_line_is_no_json(tmp_path: Path) -> None:
    assert [r.rule for r, _ in read_rule_file(write(tmp_path, "[a, b] -> c\n"))] == [
        "not(t.a == u.a and t.b == u.b and t.c != u.c)"
    ]
    assert read_rule_file(write(tmp_path, '["a", "b"]\n["a"] -> "b"'))[0][0].kind == "key"
    assert read_rule_file(write(tmp_path, '{"a"} -> b'))[0][0].kind == "fd"


def test_all_faults_of_a_file_are_in_one_error(tmp_path: Path) -> None:
    path = write(tmp_path, "a -> b\nnot(t.a = )\n#\nt1&t2&EQ(t1.x,t2.a)\r\nnot(t.a == u.b)\n")
    with pytest.raises(RuleError) as caught:
        read_rule_file(path, columns=["a", "b"])
    text = str(caught.value)
    assert "rules.txt line 2, position 11: expected a column such as t.a or a constant, found ')'" in text
    assert "rules.txt line 4, position 13: no column of the name 'x'. Known: 'a', 'b'" in text
    assert text.count("position") == 2
    assert text.count("Accepted:") == 1


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "no rules in file: 'rules.txt'; allowed: one rule a line, or JSON"),
        (b"# nothing\n\n", "no rules in file"),
        (b"[]", "expected the name of a column"),
        (b"a -> b\nna\xefve -> b\n", "encoding of rules file: 'rules.txt line 2'; allowed: UTF-8"),
        ("a -> b".encode("utf-16"), "It is UTF-16: save it as UTF-8"),
        (b'{"schema": "tuplewise/1",\n "result": {]}', r"begins as JSON and isn't: 'line 2, column 13"),
        (b'{"result": {"ods": []}}', "no list of rules in JSON file: 'rules.txt'"),
        (b'{"result": {"constraints": []}}', "no rules in file"),
    ],
)
def test_files_without_rules(tmp_path: Path, data: bytes, what: str) -> None:
    with pytest.raises(RuleError, match=what):
        read_rule_file(write(tmp_path, data))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"rules file can't be read: '.*nosuch\.txt'\. No such file"):
        read_rule_file(tmp_path / "nosuch.txt")


def test_what_discovery_writes_is_read_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"zip.code": ["01", "01", "02"], "lo": [1, 2, 3], "my hi": [4, 1, 9], "c": ["x", "x", "y"]})
    found = tw.discover_dcs(frame, single_tuple=True)
    read = read_rule_file(write(tmp_path, found.to_json(), "found.json"), columns=list(frame))
    assert len(read) == len(found.constraints) > 3
    assert [place for _, place in read][:2] == ["found.json rule 1", "found.json rule 2"]
    for (rule, _), given in zip(read, found.constraints, strict=True):
        assert rule == given.normalised() == read_rule(str(given), columns=list(frame))


def test_json_in_its_forms(tmp_path: Path) -> None:
    text, triples = "not(t.a == u.a)", [["t.a", "==", "u.a"]]
    for document in (
        {"schema": "tuplewise/1", "result": {"rules": [{"rule": text}]}},
        {"result": {"rules": [{"rule": "what was typed", "predicates": triples}]}},
        {"rules": [{"rule": text, "holds": True}]},
        {"constraints": [{"predicates": triples}]},
        [{"predicates": triples}],
        [text],
    ):
        ((rule, place),) = read_rule_file(write(tmp_path, json.dumps(document), "r.json"))
        assert (rule.rule, place) == (text, "r.json rule 1")


def test_triples_with_constants_round_trip() -> None:
    given = [
        ("it's", "text"), ("5", "text"), ("-5", "integer"), ("9007199254740993", "integer"), ("1.50", "decimal"),
        ("1e300", "double"), ("true", "boolean"), ("false", "boolean"),
    ]  # fmt: skip
    constants = [Constant(text, type_) for text, type_ in given]  # type: ignore[arg-type]
    predicates = [Predicate("u", "a.b", "<", None, c) for c in constants]
    rule = DenialConstraint(
        (*predicates, Predicate("t", "x", "is", None, NULL), Predicate("t", "", "is not", None, NULL))
    ).normalised()
    stored = json.loads(json.dumps([p.triple for p in rule.predicates]))
    assert rule_of_triples(stored) == rule


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"predicates": []}, "no predicates"),
        ({"predicates": [["t.a", "=="]]}, r"has to be \[operand, operator, operand\]"),
        ({"predicates": [["t.a", "~", "u.a"]]}, "no operator '~'. Known: ==, !="),
        ({"predicates": [["s.a", "==", "u.a"]]}, "an operand has to be"),
        ({"predicates": [["t.a", "==", "u.x"]]}, "no column of the name 'x'. Known: 'a'"),
        ({"predicates": [["t.a", "is", {"value": 5, "type": "integer"}]]}, "'is' stands before null only"),
        ({"predicates": [["t.a", "==", {"value": None, "type": "null"}]]}, "'==' does not stand before null"),
        ({"predicates": [["t.a", "==", {"value": "x", "type": "integer"}]]}, "'x' is no number"),
        ({"predicates": [["t.a", "==", {"value": 1, "type": "blob"}]]}, "with a type of text, integer"),
        ({"predicates": [["t.a", "==", {"value": True, "type": "integer"}]]}, "a constant has to be"),
        ({"rule": "not(t.a = "}, "position 11: expected"),
        ({"id": 5}, 'no rule: .*allowed: text, or an object with "rule"'),
        (7, "no rule: 7"),
    ],
)
def test_faults_in_json(tmp_path: Path, entry: object, what: str) -> None:
    path = write(tmp_path, json.dumps([{"rule": "not(t.a == u.a)"}, entry]), "r.json")
    with pytest.raises(RuleError, match=rf"r\.json rule 2.*{what}"):
        read_rule_file(path, columns=["a"])


def test_modes_count_for_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "!(t.City == New York)\n")
    ((rule, _),) = read_rule_file(path, syntax="desbordante")
    assert rule.rule == "not(t.City == 'New York')"
