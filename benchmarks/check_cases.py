"""Cases of rule checking: the rules of the paper on FACET, its table 2, and what its bars ask beside them.

Both sides hold the columns that the rules name; binding, planning and counting are timed, loading is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import datasets, duckdb_peer
from benchmarks.answers import digest_counts, digest_pairs
from benchmarks.case import Case, Measurement, Peer, timed
from benchmarks.commands import run_command
from benchmarks.datasets import Source
from benchmarks.duckdb_peer import columns_of, peer_counts, peer_existence, peer_listing
from benchmarks.memory import extra_peak_bytes_of_check

if TYPE_CHECKING:
    from tuplewise.engine.dc.constraint import DenialConstraint
    from tuplewise.engine.table.relation import Relation

ONE_BY_ONE = "tuplewise-one-by-one"
FIRST_PAIRS = 100

PHI = {
    4: "not(t.area_code == u.area_code and t.phone == u.phone)",
    5: "not(t.zip == u.zip and t.city != u.city)",
    6: "not(t.state == u.state and t.has_child == u.has_child and t.child_exemp != u.child_exemp)",
    7: "not(t.state == u.state and t.salary > u.salary and t.rate < u.rate)",
    8: "not(t.origin == u.dest and t.dest == u.origin and t.distance != u.distance)",
    9: "not(t.origin == u.origin and t.dest == u.dest and t.flights > u.flights and t.passengers < u.passengers)",
    10: "not(t.customer == u.supplier and t.supplier == u.customer)",
    11: "not(t.receiptdate >= u.shipdate and t.shipdate <= u.receiptdate)",
    12: "not(t.extprice > u.extprice and t.discount < u.discount)",
    13: "not(t.quantity == u.quantity and t.tax == u.tax and t.extprice > u.extprice and t.discount < u.discount)",
    14: "not(t.title == u.title and t.production_year == u.production_year and t.kind != u.kind)",
    15: "not(t.title == u.title and t.name == u.name and t.char_name == u.char_name and t.role == u.role)",
}
CONSTANT_LEFT = "not(t.site == u.site and t.serial != u.serial)"
THREE = "not(t.extprice > u.extprice and t.discount < u.discount and t.shipdate < u.shipdate)"
FOUR = (
    "not(t.extprice > u.extprice and t.discount < u.discount and t.shipdate < u.shipdate and t.supplier > u.supplier)"
)
THREE_IN_GROUPS = (
    "not(t.state == u.state and t.salary > u.salary and t.rate < u.rate and t.child_exemp < u.child_exemp)"
)

KEYS = (
    "lname, area_code, salary",
    "lname, city, salary",
    "fname, lname, state, salary",
    "fname, lname, salary, rate",
    "fname, lname, salary, child_exemp",
    "fname, area_code, zip, salary",
    "fname, area_code, has_child, salary",
    "fname, area_code, salary, single_exemp",
    "fname, area_code, salary, child_exemp",
    "lname, state, has_child, salary",
    "lname, state, salary, married_exemp",
    "lname, marital_status, salary, rate",
    "lname, salary, rate, single_exemp",
    "lname, salary, rate, child_exemp",
    "lname, salary, single_exemp, married_exemp",
    "fname, lname, area_code, zip, rate",
    "fname, lname, area_code, rate, single_exemp",
    "fname, zip, marital_status, has_child, salary",
    "fname, zip, has_child, salary, single_exemp",
    "fname, zip, salary, single_exemp, child_exemp",
)
"""Twenty of the 37 minimal keys that discovery finds in `tax(10_000, seed=2)` beside phone, evenly spread by size."""


def key_rule(columns: str) -> str:
    """The rule that some columns, listed with commas, are a key.

    Examples
    --------
    >>> key_rule("zip, city")
    'not(t.zip == u.zip and t.city == u.city)'
    """
    return "not(" + " and ".join(f"t.{name} == u.{name}" for name in columns.split(", ")) + ")"


def loaded(case: Case, path: Path) -> tuple[Relation, list[DenialConstraint]]:
    """The columns that the rules of a case name, and the rules."""
    from tuplewise.engine.dc.rule_text.reading import read_rule

    texts = case.parameters["rules"]
    return case.dataset.load(path, columns_of(texts)), [read_rule(text) for text in texts]


def measure_counts(case: Case, path: Path, warm_runs: int, *, together: str | None = None) -> Measurement:
    """`check_rules` that only counts; `together` overrides how the case says that rules are checked together."""
    from tuplewise.engine.dc.violations.detect import check_rules
    from tuplewise.engine.dc.violations.found import DcCheck
    from tuplewise.engine.options import DcCheckOptions

    relation, rules = loaded(case, path)
    chosen: Any = together or case.parameters["together"]
    options = DcCheckOptions(count_only=True, together=chosen, device="cpu")
    parts: dict[str, list[float]] = {}

    def work() -> DcCheck:
        found = check_rules(relation, rules, options)
        for name, value in found.timings_seconds.items():
            parts.setdefault(name, []).append(value)
        return found

    seconds, results = timed(work, warm_runs)
    counts = [rule.violating_pairs for rule in results[-1].rules]
    figures: dict[str, Any] = {"steps": [[_step(s) for s in rule.plan] for rule in results[-1].rules]}
    if case.parameters.get("memory"):
        figures["extra_peak_bytes"] = extra_peak_bytes_of_check(relation, case.parameters["rules"])
        figures["encoded_columns_bytes"] = relation.codes.nbytes
    return _measurement(seconds, parts, sum(counts), digest_counts(counts), figures)


def measure_existence(case: Case, path: Path, warm_runs: int) -> Measurement:
    """`find_witnesses`, one for each rule."""
    from tuplewise.engine.dc.violations.existence import find_witnesses

    relation, rules = loaded(case, path)
    seconds, results = timed(partial(find_witnesses, relation, rules, limit=1, device="cpu"), warm_runs)
    found = [len(witnesses) for witnesses in results[-1]]
    return _measurement(seconds, {}, sum(found), digest_counts(found), {})


def measure_listing(case: Case, path: Path, warm_runs: int) -> Measurement:
    """`iterate_pairs` to its end; a symmetric rule gives each pair once. What is listed is digested in a run apart."""
    from tuplewise.engine.dc.violations.listing import iterate_pairs

    relation, (rule,) = loaded(case, path)

    def work() -> int:
        return sum(len(chunk) for chunk in iterate_pairs(relation, rule, device="cpu"))

    seconds, results = timed(work, warm_runs)
    chunks = iterate_pairs(relation, rule, device="cpu")
    digest = digest_pairs((chunk[:, 0], chunk[:, 1]) for chunk in chunks)
    return _measurement(seconds, {}, results[-1], digest, {"order": "ascending by t, u"})


def measure_first_pairs(case: Case, path: Path, warm_runs: int) -> Measurement:
    """`check_rules` that counts, ranks rows and lists the first pairs, as `dc check` does by default."""
    from tuplewise.engine.dc.violations.detect import check_rules
    from tuplewise.engine.options import DcCheckOptions

    relation, rules = loaded(case, path)
    options = DcCheckOptions(pairs=case.parameters["pairs"], device="cpu")
    seconds, results = timed(partial(check_rules, relation, rules, options), warm_runs)
    (found,) = results[-1].rules
    figures = {"violating_pairs": found.violating_pairs, "violating_rows": found.violating_rows}
    digest = digest_pairs([(found.pairs[:, 0], found.pairs[:, 1])])
    return _measurement(seconds, {}, len(found.pairs), digest, figures)


def measure_check_command(case: Case, path: Path, warm_runs: int) -> Measurement:
    """The whole command on a CSV file, from start to exit; exit code 1 says that rules are violated."""
    rules = [word for rule in case.parameters["rules"] for word in ("--rule", rule)]
    runs = run_command(["dc", "check", str(path), *rules], warm_runs + 1, exit_code=1)
    counts = [rule["violating_pairs"] for rule in runs.reports[-1]["result"]["rules"]]
    checking = {"check": [report["timings_seconds"]["check"] for report in runs.reports]}
    return _measurement(runs.seconds, checking, sum(counts), digest_counts(counts), runs.figures)


def _measurement(
    seconds: list[float], kernels: dict[str, list[float]], count: int, digest: str, figures: dict[str, Any]
) -> Measurement:
    return {
        "cold_seconds": seconds[0],
        "warm_seconds": seconds[1:],
        "kernel_seconds": kernels,
        "answer": {"count": count, "digest": digest},
        "figures": figures,
    }


def _step(step: dict[str, Any]) -> str:
    return f"{step['step']}: {step['algorithm']}"


def _case(
    name: str,
    dataset: Source,
    rules: Sequence[str],
    ours: Callable[[Case, Path, int], Measurement],
    peer: Peer | None = None,
    **parameters: Any,
) -> Case:
    peers = {} if peer is None else {duckdb_peer.NAME: peer}
    return Case(f"check/{name}", dataset, ours, {"rules": list(rules), **parameters}, peers)


def _counted(name: str, dataset: Source, rule: str, peer: Peer | None = None, **more: Any) -> Case:
    return _case(name, dataset, [rule], measure_counts, peer, together="auto", **more)


QUICK = Peer(peer_counts)
ONCE = Peer(peer_counts, warm_runs=0)
SLOW = Peer(peer_counts, warm_runs=0, slow=True)

CHECK_CASES = (
    _counted("phi4", datasets.TAX_1M, PHI[4], QUICK),
    _counted("phi5", datasets.TAX_1M, PHI[5], QUICK),
    _counted("phi6", datasets.TAX_1M, PHI[6], ONCE),
    _counted("phi7", datasets.TAX_1M, PHI[7], SLOW),
    _counted("phi8", datasets.FLIGHTS_1M, PHI[8], QUICK),
    _counted("phi9", datasets.FLIGHTS_1M, PHI[9], QUICK),
    _counted("phi10", datasets.LINEITEM_1M, PHI[10], QUICK),
    _counted("phi11-100k", datasets.LINEITEM_100K, PHI[11], ONCE),
    _counted("phi11", datasets.LINEITEM_1M, PHI[11]),
    _counted("phi12-100k", datasets.LINEITEM_100K, PHI[12], SLOW),
    _counted("phi12", datasets.LINEITEM, PHI[12], memory=True),
    _counted("phi13-1m", datasets.LINEITEM_1M, PHI[13], ONCE),
    _counted("phi13", datasets.LINEITEM, PHI[13]),
    _counted("phi14", datasets.TITLES_1M, PHI[14], QUICK),
    _counted("phi15", datasets.CASTINGS_1M, PHI[15], QUICK),
    _case("phi4-listed", datasets.TAX_1M, [PHI[4]], measure_listing, Peer(peer_listing)),
    _case("phi5-listed", datasets.TAX_1M, [PHI[5]], measure_listing, Peer(peer_listing)),
    _case("phi6-listed", datasets.TAX_1M, [PHI[6]], measure_listing, Peer(peer_listing, warm_runs=0)),
    _case(
        "tax-clean-exists",
        datasets.TAX_1M_CLEAN,
        [PHI[7]],
        measure_existence,
        Peer(peer_existence, warm_runs=0, slow=True),
    ),
    _counted("constant-left-100k", datasets.CONSTANT_LEFT, CONSTANT_LEFT, SLOW),
    _case("constant-left-100k-first", datasets.CONSTANT_LEFT, [CONSTANT_LEFT], measure_first_pairs, pairs=FIRST_PAIRS),
    _counted("three-inequalities-100k", datasets.LINEITEM_100K, THREE, SLOW),
    _counted("four-inequalities-100k", datasets.LINEITEM_100K, FOUR, SLOW),
    _counted("three-inequalities-in-groups", datasets.TAX_1M, THREE_IN_GROUPS, SLOW),
    Case(
        "check/twenty-rules",
        datasets.TAX_1M_CLEAN,
        measure_counts,
        {"rules": [key_rule(columns) for columns in KEYS], "together": "auto"},
        {ONE_BY_ONE: Peer(partial(measure_counts, together="none")), duckdb_peer.NAME: QUICK},
    ),
    Case(
        "check/command-30000",
        datasets.TAX_30000,
        measure_check_command,
        {"rules": [PHI[n] for n in (4, 5, 6, 7)]},
        warm_runs=2,
    ),
)
