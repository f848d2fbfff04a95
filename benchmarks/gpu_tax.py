"""The whole discovery of denial constraints of Tax in a session on a borrowed GPU: from codes in host memory to rules.

The table is that of `dc_hybrid/tax-1000000`, made without pyarrow: the rules must be those that are recorded there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import records
from benchmarks.answers import digest_bytes, digest_constraints
from benchmarks.generators import tax_numbers
from benchmarks.gpu_floors import by_operations
from benchmarks.gpu_records import Session, simulated
from benchmarks.gpu_timing import Answer, Timed, time_on_both
from tuplewise.engine.dc.discover import discover
from tuplewise.engine.dc.discovery import DcDiscovery
from tuplewise.engine.options import DcDiscoverOptions
from tuplewise.engine.table.relation import Column, Relation, TypeName
from tuplewise.gpu_kernels.device import Device

GROUP = "gpu_tax"
SEED = 2
RECORDED = "dc_hybrid/tax-{rows}"
OPERATIONS = 52  # a pair that is compared: four for each of 7 ordered columns, three for each of 8 others
TYPES: dict[str, TypeName] = {
    "fname": "text", "lname": "text", "gender": "text", "area_code": "integer", "phone": "text", "city": "text",
    "state": "text", "zip": "integer", "marital_status": "text", "has_child": "text", "salary": "integer",
    "rate": "double", "single_exemp": "integer", "married_exemp": "integer", "child_exemp": "integer",
}  # fmt: skip


def tax_relation(rows: int) -> Relation:
    """Tax with each column ranked alone (no columns are compared with each other), without the values."""
    numbers = tax_numbers(rows, seed=SEED)
    ranked = {name: np.unique(numbers[name], return_inverse=True) for name in TYPES}
    codes = np.stack([ranked[name][1].astype(np.int32) for name in TYPES])
    codes.setflags(write=False)
    columns = tuple(Column(name, kind, "as generated", len(ranked[name][0]), 0) for name, kind in TYPES.items())
    return Relation("tax", None, columns, codes, {})


def rules_of(relation: Relation, device: Device) -> DcDiscovery:
    spec = "cpu" if device.kind == "cpu" else f"cuda:{device.index}"
    return discover(relation, DcDiscoverOptions(cross_columns=False, algorithm="hybrid", device=spec))


def digest_of(found: DcDiscovery) -> tuple[int, str]:
    return digest_constraints([(p.left, p.operator, str(p.right)) for p in c.predicates] for c in found.constraints)


def time_tax(session: Session) -> None:
    """A small table first, which leaves everything compiled."""
    rows, small = (12, 8) if simulated() else (1_000, 300) if session.smoke else (1_000_000, 20_000)
    name = f"tax-{rows}"
    if not session.has(60.0, name, GROUP):
        return
    warm_up = tax_relation(small)
    relation = tax_relation(rows)
    phases: dict[str, Any] = {}

    def work(device: Device, deadline: float) -> Answer:
        found = rules_of(relation, device)
        phases[device.kind] = dict(found.timings_seconds)
        compared = float((found.search or {}).get("compared_pairs", 0))
        count, digest = digest_of(found)
        known = records.latest(records.read(), RECORDED.format(rows=rows))
        if known is not None and known["answer"]["digest"] != digest:
            session.fault(f"{name} on {device.kind}: {count} rules of {known['answer']['count']} that are recorded")
        return Answer([_as_bytes(digest)], count, compared or 1.0, not found.partial)

    if digest_of(rules_of(warm_up, session.device)) != digest_of(rules_of(warm_up, _cpu())):
        session.fault(f"twins differ: tax-{small}")
    dataset = {"name": f"tax-{rows}-seed-{SEED}-ranks", "rows": rows, "columns": len(TYPES),
               "sha256": digest_bytes(relation.codes.tobytes())}  # fmt: skip
    time_on_both(session, Timed(name, GROUP, dataset, work, "pairs", least_seconds=20.0, parameters=phases,
                                floor=by_operations(session.device, OPERATIONS)))  # fmt: skip


def _cpu() -> Device:
    from tuplewise.gpu_kernels.device import pick_device

    return pick_device("cpu")


def _as_bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)
