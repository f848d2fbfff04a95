"""What a check of this machine or of a cluster found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    `ok` is None if something is missing or untried and nothing depends on it. `needed`: `device="auto"` needs it.
    """

    name: str
    ok: bool | None
    found: str
    advice: str = ""
    needed: bool = False

    def to_dict(self) -> dict[str, object]:
        """As the JSON of `tuplewise doctor` lists it."""
        return {"name": self.name, "ok": self.ok, "found": self.found, "advice": self.advice}
