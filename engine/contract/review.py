"""The review of a contract: people accept or reject its proposed rules, one after the other or on a page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tuplewise.engine.contract.contract import Contract, ContractRule, Status
from tuplewise.engine.contract.file import ContractFile, status_places
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.report import review_page

ALL = "all"
Decision = Literal["accepted", "rejected", "skipped"]


class _Step(NamedTuple):
    """What was done with a rule, by its place among those that are reviewed."""

    place: int
    decision: Decision


class Review:
    """The proposed rules of a contract, one after the other.

    Each decision changes the file as it is on the disk by then, and is written at once, whole or not at all.

    Parameters
    ----------
    path : the file of the contract

    Raises
    ------
    InputError : for a file that can't be read, or that is no contract
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._file = ContractFile(path)
        self._ids = [rule.id for rule in self.contract.rules if rule.status == "proposed"]
        self._place = 0
        self._steps: list[_Step] = []

    @property
    def contract(self) -> Contract:
        """The contract as it was last read or written."""
        return self._file.contract

    @property
    def count(self) -> int:
        """How many rules were proposed when the review began."""
        return len(self._ids)

    @property
    def number(self) -> int:
        """The number of the rule that is next, from 1."""
        return self._place + 1

    @property
    def rule(self) -> ContractRule | None:
        """The rule that is next; None after the last. Rules that are proposed no more are passed over."""
        proposed = {rule.id: rule for rule in self.contract.rules if rule.status == "proposed"}
        while self._place < self.count and self._ids[self._place] not in proposed:
            self._place += 1
        return proposed[self._ids[self._place]] if self._place < self.count else None

    def decide(self, status: Literal["accepted", "rejected"]) -> None:
        """Accept or reject the rule that is next, and write the file.

        Raises
        ------
        InputError : where the file can't be read or written by now, or lacks the rule
        """
        self._write(self._ids[self._place], status)
        self._go_on(status)

    def skip(self) -> None:
        """Leave the rule that is next as it is."""
        self._go_on("skipped")

    def back(self) -> bool:
        """Undo the last step: its rule is proposed, and next. False where there was none. Raises as `decide`."""
        if not self._steps:
            return False
        last = self._steps[-1]
        if last.decision != "skipped":
            self._write(self._ids[last.place], "proposed")
        self._steps.pop()
        self._place = last.place
        return True

    def counts(self) -> Counter[str]:
        """How many rules were accepted, rejected and skipped in this review."""
        return Counter(step.decision for step in self._steps)

    def _go_on(self, decision: Decision) -> None:
        self._steps.append(_Step(self._place, decision))
        self._place += 1

    def _write(self, rule_id: str, status: Status) -> None:
        if not self._file.is_current():  # it was edited meanwhile
            self._file = ContractFile(self._path)
        self._file.set_status(rule_id, status)
        self._file.save()


def decide(path: str | os.PathLike[str], accept: Sequence[str], reject: Sequence[str]) -> Counter[str]:
    """Accept and reject rules by their ids, and write the file. Returns how many were.

    Parameters
    ----------
    accept, reject : ids; `ALL` alone: all proposed rules that the other does not name

    Raises
    ------
    InputError : for unknown ids, or for a rule that both name; nothing is written then
    """
    kept = ContractFile(path)
    proposed = [rule.id for rule in kept.contract.rules if rule.status == "proposed"]
    named: dict[str, Status] = {}
    every: Status | None = None
    ways: list[tuple[Status, Sequence[str]]] = [("accepted", accept), ("rejected", reject)]
    for status, ids in ways:
        for one in ids:
            if (one == ALL and every is not None) or named.get(one, status) != status:
                what = "all rules" if one == ALL else "a rule"
                raise InputError(message(f"{what} can't be accepted and rejected", None if one == ALL else one))
            if one == ALL:
                every = status
            else:
                named[one] = status
    if every is not None:
        named = {**dict.fromkeys(proposed, every), **named}
    kept.set_statuses(named)
    kept.save()
    return Counter(named.values())


def page(path: str | os.PathLike[str]) -> str:
    """A page with a switch for each rule, which hands back the file with what was chosen, all else as it is.

    Raises
    ------
    InputError : for a file that can't be read, or that is no contract
    """
    kept = ContractFile(path)
    text = kept.text()
    places = status_places(text)
    ends = [0, *(place.end for place in places)]
    starts = [*(place.start for place in places), len(text)]
    pieces = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    statuses = [
        {
            "left": text[place.start : place.end],
            "accepted": place.written("accepted"),
            "rejected": place.written("rejected"),
        }
        for place in places
    ]
    numbers = {place.rule_id: number for number, place in enumerate(places)}
    several = len(kept.contract.tables) > 1
    rules = [{**_record(rule, several), "switch": numbers.get(rule.id)} for rule in kept.contract.rules]
    return review_page.page({"name": Path(path).name, "rules": rules, "pieces": pieces, "statuses": statuses})


def _record(rule: ContractRule, several: bool) -> dict[str, Any]:
    """What a page shows of a rule."""
    seen = rule.seen or {}
    return {
        "id": rule.id,
        "table": rule.table if several else "",
        "kind": rule.kind,
        "rule": rule.text,
        "english": rule.english,
        "status": rule.status,
        "severity": rule.severity,
        "allowed": str(rule.tolerance),
        "owner": rule.owner,
        "note": rule.note,
        "rows": seen.get("rows"),
        "exceptions": seen.get("exceptions"),
        "evidence": seen.get("evidence"),
        "strength": seen.get("strength"),
        "examples": list(seen.get("examples", ())),
    }
