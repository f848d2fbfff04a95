"""What a state keeps of each column."""

from __future__ import annotations

from dataclasses import dataclass

from tuplewise.engine.relation.relation import DOMAIN_OF_TYPE, Domain, TypeName


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column of a state: its name, the type that its values have for good, and why it has that type."""

    name: str
    type: TypeName
    why: str

    @property
    def domain(self) -> Domain:
        """Columns of one domain share a dictionary, so their codes can be compared."""
        return DOMAIN_OF_TYPE[self.type]
