"""The JSON Schema of the contract file itself, for editors."""

from __future__ import annotations

import json

from tuplewise.engine.contract.contract import Contract
from tuplewise.engine.contract.exports.exported import Exported
from tuplewise.engine.contract.file import schema


def export(contract: Contract, table: str | None) -> Exported:
    """The schema. It is the same for all contracts."""
    return Exported(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", ".json")
