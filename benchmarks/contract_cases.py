"""The check of a contract of thirty rules on a million rows that are here."""

from __future__ import annotations

import hashlib
from pathlib import Path

from benchmarks.case import Case, Measurement, timed
from benchmarks.datasets import TAX_1M
from benchmarks.memory import extra_bytes_of
from tuplewise.engine.contract.check import CheckedContract, check_contract
from tuplewise.engine.contract.contract import Contract, ContractRule, ContractTable
from tuplewise.engine.contract.forms import Kind, read_form
from tuplewise.engine.options import ContractCheckOptions

RULES: tuple[tuple[Kind, str], ...] = (
    ("key", "[phone, area_code]"),
    ("fd", "zip -> city"),
    ("fd", "zip -> state"),
    ("fd", "area_code -> state"),
    ("fd", "fname -> gender"),
    ("fd", "state, marital_status -> single_exemp"),
    ("fd", "state, marital_status -> married_exemp"),
    ("fd", "state, has_child -> child_exemp"),
    ("od", "[state]: salary ~ rate"),
    ("od", "single_exemp ~ married_exemp desc"),
    ("row", "child_exemp <= salary"),
    ("row", "single_exemp <= salary"),
    ("row", "married_exemp <= salary"),
    ("values", "gender in ('F', 'M')"),
    ("values", "marital_status in ('S', 'M')"),
    ("values", "has_child in ('Y', 'N')"),
    ("range", "salary between 0 and 1000000"),
    ("range", "rate between 0 and 15"),
    ("range", "zip between 10000 and 99999"),
    ("range", "area_code between 200 and 999"),
    ("range", "single_exemp >= 0"),
    ("range", "child_exemp >= 0"),
    ("not_null", "phone is not null"),
    ("not_null", "zip is not null"),
    ("not_null", "city is not null"),
    ("not_null", "salary is not null"),
    ("dc", "not(t.state == u.state and t.salary > u.salary and t.rate < u.rate)"),
    ("dc", "not(t.state == u.state and t.has_child == u.has_child and t.child_exemp != u.child_exemp)"),
    ("dc", "not(t.zip == u.zip and t.area_code == u.area_code and t.state != u.state)"),
    ("dc", "not(t.marital_status == 'S' and t.married_exemp > 0)"),
)


def thirty_rules(table: str) -> Contract:
    """A contract of all kinds of rules of one table."""
    rules = (
        ContractRule(f"rule-{number}", table, kind, text, read_form(kind, text))
        for number, (kind, text) in enumerate(RULES)
    )
    return Contract("thirty rules", "unknown", {table: ContractTable(table)}, tuple(rules))


def measure_check(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Checking the contract on a table that is here, and the memory that this takes on top."""
    relation = case.dataset.load(path)
    contract = thirty_rules(relation.name)
    extra: list[int] = []
    stages: dict[str, float] = {}

    def once() -> CheckedContract:
        found: list[CheckedContract] = []
        options = ContractCheckOptions()
        extra.append(extra_bytes_of(lambda: found.append(check_contract(contract, {relation.name: relation}, options))))
        stages.update(found[0].timings_seconds)
        return found[0]

    seconds, results = timed(once, warm_runs)
    broken = {one.rule.text: one.exceptions for one in results[-1].rules}
    digest = hashlib.sha256(str(broken).encode()).hexdigest()
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": {},
        "answer": {"count": sum(map(bool, broken.values())), "digest": digest},
        "figures": {"relation_bytes": relation.codes.nbytes, "extra_peak_bytes": extra, "stages": stages},
    }


CONTRACT_CASES = (Case("contract/tax-1m", TAX_1M, measure_check, {"rules": len(RULES)}, warm_runs=3),)
