"""The fixed part of a state of denial constraints: columns and types, the predicate space, options."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from tuplewise.engine.dc.predicate import PredicateSpace, space_of_groups
from tuplewise.engine.options import DcDiscoverOptions, DcStateOptions
from tuplewise.engine.table.rows import KeptColumn

_DECIMALS = ("error", "shared_values", "comparable_means")


@dataclass(frozen=True)
class Fixed:
    """The part of a state that doesn't change, but for `counting`, which a checkpoint may end.

    Attributes
    ----------
    name, path : of the table that the state was built of
    counting : whether it is kept how many pairs leave each clue: where it was asked for, and of small tables, where a
        new row is compared with all others anyway. In the record: when the state was built.
    """

    name: str
    path: str | None
    columns: tuple[KeptColumn, ...]
    null_tokens: tuple[str, ...]
    options: DcStateOptions
    space: PredicateSpace
    counting: bool

    def record(self) -> dict[str, Any]:
        """As JSON holds it."""
        discover = asdict(self.options.discover)
        discover |= {name: str(discover[name]) for name in _DECIMALS}
        space = self.space
        return {
            "name": self.name,
            "path": self.path,
            "columns": [asdict(column) for column in self.columns],
            "null_tokens": list(self.null_tokens),
            "options": {**asdict(self.options), "discover": discover, "key": list(self.options.key)},
            "groups": [
                [int(a), int(b), int(s), bool(o)]
                for a, b, s, o in zip(space.left, space.right, space.scope, space.ordered, strict=True)
            ],
            "counting": self.counting,
        }

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> Fixed:
        """From JSON. Raises KeyError, TypeError, ValueError or InputError where it is no such record."""
        given = dict(record["options"])
        discover = dict(given["discover"])
        discover |= {name: Decimal(discover[name]) for name in _DECIMALS}
        options = DcStateOptions(
            **{**given, "discover": DcDiscoverOptions(**discover), "key": tuple(given["key"])}
        )
        columns = tuple(KeptColumn(**column) for column in record["columns"])
        groups = np.array(record["groups"], dtype=np.int64).reshape(-1, 4)
        space = space_of_groups(tuple(c.name for c in columns), groups, options.discover)
        path = None if record["path"] is None else str(record["path"])
        tokens = tuple(record["null_tokens"])
        return cls(str(record["name"]), path, columns, tokens, options, space, bool(record["counting"]))
