"""List order dependencies decided from what was discovered, without rows."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from od.list_od_tables import FLIGHTS, NAMES, discovered, list_od, random_values, relation_of
from oracles import list_od as oracle

from tuplewise.engine.errors import InputError
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, Dependencies, mask_of
from tuplewise.engine.od.derive import derive_list_ods
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.implied import SavedOds, check_against
from tuplewise.engine.od.list_od import read_od
from tuplewise.engine.od.order_by import shortest_order_by
from tuplewise.gpu_kernels.words import members


def document_of(saved: SavedOds, **options: Any) -> dict[str, Any]:
    """What `od discover` writes of it."""
    dependencies = saved.dependencies
    constant: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for i, (kind, left, right) in enumerate(
        zip(dependencies.kind.tolist(), dependencies.left.tolist(), dependencies.right.tolist(), strict=True)
    ):
        context = [saved.names[c] for c in members(dependencies.contexts[i])]
        if kind == CONSTANT:
            constant.append({"context": context, "attribute": saved.names[left]})
        else:
            direction = {2: "ascending", 3: "descending"}[kind]
            sides = {"left": saved.names[left], "right": saved.names[right]}
            pairs.append({"context": context, **sides, "direction": direction})
    return {
        "schema": "tuplewise/1",
        "command": "od discover",
        "tables": [{"name": "t", "columns": [{"name": name} for name in saved.names]}],
        "options": {"error": 0, "max_context": saved.max_context, **options},
        "partial": False,
        "result": {"constant": constant, "order_compatible": pairs, "count": len(dependencies)},
    }


def test_verdicts_equal_those_on_the_table() -> None:
    verdicts = 0
    for seed in range(25):
        table = random_values(seed, 3 + seed % 2)
        saved = SavedOds.of_document(json.loads(json.dumps(document_of(discovered(table)))))
        asked = list(itertools.product(oracle.lists(range(len(table)), 2), repeat=2))
        checks = check_against(saved, [list_od(left, right, saved.names) for left, right in asked])
        orders = oracle.Orders(table)
        for (left, right), check in zip(asked, checks, strict=True):
            assert check.holds == orders.holds(left, right), (table, str(check.od))
            assert check.violation is None
            verdicts += check.holds
    assert verdicts > 5000


def test_repeated_columns_and_longer_lists() -> None:
    saved = discovered(FLIGHTS, NAMES)
    asked = {
        "MTOW -> CAP": True, "Type -> Type, MC": True, "M, W -> W, M": True, "W, M -> M, W": True,
        "DT, ET -> DT, AT": True, "DT, DT desc, ET, ET -> DT, AT": True, "MTOW desc -> CAP desc, CAP": True,
        "M -> W": False, "ET -> AT": False, "MTOW -> CAP desc": False, "M -> M desc": False,
    }  # fmt: skip
    found = check_against(saved, [read_od(text, NAMES) for text in asked])
    assert {text: check.holds for text, check in zip(asked, found, strict=True)} == asked


def test_contexts_that_were_not_looked_at_are_undecided() -> None:
    undecided = 0
    for seed in range(8):
        table = random_values(seed, 4)
        saved = discovered(table, max_context=1)
        orders = oracle.Orders(table)
        asked = list(itertools.product(oracle.lists(range(4), 2), repeat=2))
        checks = check_against(saved, [list_od(left, right, saved.names) for left, right in asked])
        for (left, right), check in zip(asked, checks, strict=True):
            assert check.holds is None or check.holds == orders.holds(left, right)
            undecided += check.holds is None
    assert undecided > 0


def test_a_partial_discovery_denies_nothing() -> None:
    whole = discovered(FLIGHTS, NAMES)
    partial = SavedOds(NAMES, whole.dependencies, complete=False)
    held, other = check_against(partial, [read_od(text, NAMES) for text in ("MTOW -> CAP", "M -> W")])
    assert (held.holds, other.holds) == (True, None)


def test_a_partial_discovery_denies_what_its_complete_levels_deny() -> None:
    """Contexts of at most so many columns as the search was done with: whatever is not listed there does not hold."""
    verdicts = set()
    for seed in range(3):
        table = random_values(seed, 4)
        document = {**document_of(discovered(table, max_context=1)), "partial": True}
        document["options"] = {"error": 0, "max_context": None}
        document["result"]["complete_context"] = 1
        saved = SavedOds.of_document(document)
        assert saved.limited
        orders = oracle.Orders(table)
        asked = list(itertools.product(oracle.lists(range(4), 2), repeat=2))
        for (left, right), check in zip(
            asked, check_against(saved, [list_od(*both, saved.names) for both in asked]), strict=True
        ):
            assert check.holds is None or check.holds == orders.holds(left, right)
            verdicts.add(check.holds)
        del document["result"]["complete_context"]
        unknown = check_against(SavedOds.of_document(document), [list_od(*both, saved.names) for both in asked])
        assert False not in {check.holds for check in unknown}
    assert verdicts == {True, False, None}


def discovery(**given: Any) -> Discovery:
    whole = discovered(FLIGHTS, NAMES)
    options = SimpleNamespace(**{"error": Decimal(0), "max_context": None, **given})
    partial = given.get("partial", False)
    relation = relation_of(FLIGHTS, NAMES)
    return Discovery(relation, options, whole.dependencies, None, "hybrid", "", "cpu", "", {}, partial, [], {})


def test_a_discovery_at_hand_tells_the_same() -> None:
    asked = [read_od(text, NAMES) for text in ("MTOW -> CAP", "M -> W")]
    assert [check.holds for check in check_against(discovery(), asked)] == [True, False]
    assert [check.holds for check in check_against(discovery(partial=True), asked)] == [True, None]
    assert SavedOds.of(discovery(max_context=2)).max_context == 2
    assert derive_list_ods(discovery(), 2) == derive_list_ods(discovered(FLIGHTS, NAMES), 2)
    assert shortest_order_by([("M", "asc"), ("W", "asc")], discovery()).items == (("W", "asc"),)
    with pytest.raises(InputError, match=r"that rows may break: error: '0\.01'; allowed: 0"):
        check_against(discovery(error=Decimal("0.01")), asked)


def test_more_columns_than_a_word_has_bits() -> None:
    names = [f"c{i}" for i in range(130)]
    dependencies = Dependencies(
        np.array([mask_of([64], 3), mask_of([64, 128], 3)]),
        np.array([CONSTANT, ASCENDING], dtype=np.int8),
        np.array([129, 0], dtype=np.int32),
        np.array([-1, 63], dtype=np.int32),
    )
    saved = SavedOds(names, dependencies)
    asked = ["c64 -> c64, c129", "c64, c128, c0 -> c64, c128", "c64, c128, c0, c63 -> c64, c128, c63", "c0, c63 -> c63"]
    found = check_against(saved, [read_od(text, names) for text in asked])
    assert [check.holds for check in found] == [True, True, True, False]


AGAIN = "allowed: JSON that `od discover` wrote. It was cut or changed after it was saved: save it again"
TURNED = {"context": [], "left": "M", "right": "W", "direction": "up"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": "dc discover"}, "is not of od discover: 'dc discover'; allowed: JSON that `od discover` wrote"),
        ({"options": {"error": 0.01, "max_context": None}}, "that rows may break: error: '0.01'; allowed: 0. Discover"),
        ({"options": {"error": "1e-400", "max_context": None}}, "rows may break"),
        ({"command": None}, "is not of od discover; allowed: JSON that"),
        ({"options": {}}, f"saved result 'saved.json' lacks: 'options.max_context'; {AGAIN}"),
        ({"options": {"max_context": None}}, f"lacks: 'options.error'; {AGAIN}"),
        ({"options": {"max_context": None, "error": "a"}}, "options.error: 'a'; allowed: a number. It was cut"),
        ({"options": {"max_context": "2", "error": 0}}, "type of options.max_context: 'str'; allowed: a whole number."),
        ({"options": []}, "saved result 'saved.json': type of options: 'list'; allowed: an object. It was cut or"),
        ({"partial": "no"}, "type of partial: 'str'; allowed: true or false"),
        ({"result": None}, "type of result: 'null'; allowed: an object"),
        ({"result": {"constant": {}}}, "type of result.constant: 'dict'; allowed: a list"),
        ({"result": {"constant": [3]}}, "type of result.constant[0]: 'int'; allowed: an object"),
        ({"result": {"constant": [{"context": [1]}]}}, "type of result.constant[0].context[0]: 'int'; allowed: text"),
        ({"result": {"constant": [{"context": ["M"], "attribute": "Q"}]}}, "result.constant[0].attribute: 'Q'; allow"),
        ({"result": {"constant": [], "order_compatible": [TURNED]}}, "[0].direction: 'up'; allowed: 'ascending' or"),
        ({"result": {"constant": [], "order_compatible": [], "count": True}}, "type of result.count: 'bool'; allowed"),
        ({"result": {"constant": [], "order_compatible": [], "count": 3}}, "lists 0 of its dependencies: 3. Save it"),
        ({"result": {"fds": []}}, f"lacks: 'result.constant'; {AGAIN}"),
        ({"tables": []}, "lacks: 'tables[0].columns'"),
        ({"tables": [{"columns": [{"name": "M"}] * 2}]}, "has two columns of one name: ['M', 'M']"),
        ({"tables": [{"columns": [{"name": "M"}]}]}, "context[0]: 'AT'; allowed: a column of its table. It was cut or"),
    ],
)
def test_results_that_do_not_tell_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    document = {**document_of(discovered(FLIGHTS, NAMES)), **change}
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        SavedOds.read(path)
    assert message in str(caught.value)


def test_files_that_are_no_results_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    with pytest.raises(InputError, match="can't be read"):
        SavedOds.read(path)
    for text, fault in {
        "[": "Line 1, column 2: Expecting value",
        "": "Line 1, column 1: Expecting value",
        "[" * 200_000: "It is nothing that was saved",
        "9" * 5000: "It is nothing that was saved",
    }.items():
        path.write_text(text)
        with pytest.raises(InputError, match=rf"is no JSON: 'saved\.json'; allowed: JSON that .*\. {fault}"):
            SavedOds.read(path)
    path.write_bytes(b"\xff{}")
    with pytest.raises(InputError, match=r"is no JSON: .* It is not UTF-8"):
        SavedOds.read(path)
    path.write_text("[]")
    with pytest.raises(InputError, match="not of od discover: 'list'"):
        SavedOds.read(path)


def test_a_saved_file_reads_back(tmp_path: Path) -> None:
    whole = discovered(FLIGHTS, NAMES)
    path = tmp_path / "saved.json"
    path.write_text("\ufeff" + json.dumps(document_of(whole)), encoding="utf-8")
    saved = SavedOds.read(path)
    assert saved.names == NAMES
    assert (saved.complete, saved.max_context) == (True, None)
    assert len(saved.dependencies) == len(whole.dependencies)


def test_unknown_columns_are_named_with_near_ones() -> None:
    saved = discovered(FLIGHTS, NAMES)
    with pytest.raises(InputError, match=r"no column of that name in the discovery: 'MTOV'\. Did you mean 'MTOW'"):
        check_against(saved, [read_od("MTOV -> CAP", ["MTOV", "CAP"])])
