"""What differs between two tables, contracts or results: rules gained, lost, weaker and stronger, and columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from tuplewise.engine.contract.check import CheckedRule, check_contract
from tuplewise.engine.contract.contract import Contract, ContractRule, ContractTable, Tolerance
from tuplewise.engine.contract.diff_sides import RuleKey, Side, SideColumn, SideRule
from tuplewise.engine.contract.propose import listed_rules
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import ContractCheckOptions, Nulls, ProfileOptions
from tuplewise.engine.report.text import percent
from tuplewise.engine.run import Run

if TYPE_CHECKING:
    from tuplewise.engine.profile.discover import Profile
    from tuplewise.engine.table.in_spark import Table
    from tuplewise.engine.table.relation import Relation

Change = Literal["lost", "weaker", "changed", "stronger", "gained"]
ColumnChange = Literal["removed", "added", "type", "nulls"]
LEAST_NULLS = 0.01
"""Null rates that differ by more have changed, and those where there was none, or is none any more."""


@dataclass(frozen=True)
class RuleDifference:
    """A rule that differs. `why`: in what."""

    change: Change
    before: SideRule | None
    after: SideRule | None
    why: str

    @property
    def rule(self) -> SideRule:
        """The rule as it is, or was."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True)
class ColumnDifference:
    """A column that differs."""

    change: ColumnChange
    before: SideColumn | None
    after: SideColumn | None

    @property
    def column(self) -> SideColumn:
        """The column as it is, or was."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class Diff:
    """What differs between two sides.

    Attributes
    ----------
    unchanged, undecided : rules that are as they were, and that a limit left open
    relations : the tables that were read, A's first
    """

    before: Side
    after: Side
    rules: tuple[RuleDifference, ...]
    columns: tuple[ColumnDifference, ...]
    unchanged: int
    undecided: int
    options: ProfileOptions
    notes: tuple[str, ...]
    relations: tuple[Relation, ...] = ()
    device: str | None = None
    device_reason: str | None = None
    timings_seconds: Mapping[str, float] | None = None
    relation: None = None

    @property
    def partial(self) -> bool:
        """Whether a limit ended the work on a table early."""
        return self.undecided > 0 or any(side.partial for side in (self.before, self.after) if side.kind == "table")


def compare(before: Side, after: Side, options: ProfileOptions, **more: Any) -> Diff:
    """Compare two sides. `more`: the other attributes of `Diff`.

    Raises
    ------
    InputError : for results of different commands
    """
    if before.command != after.command:
        both = f"{before.name!r} of {before.command}, {after.name!r} of {after.command}"
        raise InputError(message("the two results are of different commands", both, "the same command"))
    single = len(before.tables) == len(after.tables) == 1
    olds, news = _by_key(before.rules, single), _by_key(after.rules, single)
    found: list[RuleDifference] = []
    unchanged = undecided = 0
    for key in {**olds, **news}:
        old, new = olds.get(key), news.get(key)
        if any(one is not None and one.kept is None for one in (old, new)):
            undecided += 1
            continue
        difference = _difference(old, new, after.name)
        if difference is None:
            unchanged += bool(old and old.kept)
        else:
            found.append(difference)
    order: list[Change] = ["lost", "weaker", "changed", "stronger", "gained"]
    found.sort(key=lambda one: order.index(one.change))
    columns = tuple(_columns(before, after, single))
    notes = (*more.pop("notes", ()), *_notes(before), *_notes(after))
    return Diff(before, after, tuple(found), columns, unchanged, undecided, options, notes, **more)


def _by_key(rules: Sequence[SideRule], single: bool) -> dict[RuleKey, SideRule]:
    return {("" if single else rule.table, rule.kind, rule.text): rule for rule in rules}


def _difference(old: SideRule | None, new: SideRule | None, after: str) -> RuleDifference | None:
    """How a rule differs; None where it doesn't."""
    was, now = (one.kept if one is not None and one.kept else 0 for one in (old, new))
    if not was and not now:
        return None
    if was == 2 and not now:
        return RuleDifference("lost", old, new, (new.why if new is not None else "") or _absent(new, after))
    if not was:
        why = "" if old is None else _amounts(old, new)
        return RuleDifference("gained", old, new, why)
    ways = list(_ways(old, new, was, now, after))
    if not ways:
        return None
    signs = {sign for sign, _ in ways}
    change: Change = "changed" if len(signs) > 1 or 0 in signs else "weaker" if signs == {-1} else "stronger"
    return RuleDifference(change, old, new, "; ".join(said for _, said in ways))


def _absent(new: SideRule | None, after: str) -> str:
    if new is None:
        return f"it is not in {after}"
    return f"{new.exceptions:,} of {new.of:,} break it" if new.exceptions and new.of else "it is violated"


def _amounts(old: SideRule | None, new: SideRule | None) -> str:
    """The exceptions before and after, where both are known."""
    if old is None or new is None or old.share is None or new.share is None:
        return ""
    return f"{_amount(old)} → {_amount(new)}"


def _amount(rule: SideRule) -> str:
    if not rule.exceptions:
        return "no exception"
    return f"{rule.exceptions:,} of {rule.of:,} ({percent(float(rule.share or 0))})"


def _ways(old: SideRule | None, new: SideRule | None, was: int, now: int, after: str) -> Iterator[tuple[int, str]]:
    """In what a rule is weaker (-1), stronger (1) or else (0), in words."""
    assert old is not None
    if new is None:
        yield -1, f"status {old.status} → not in {after}"
        return
    if was != now:
        yield (1 if now > was else -1), f"status {old.status} → {new.status}"
    if old.severity != new.severity:
        yield (1 if new.severity == "error" else -1), f"severity {old.severity} → {new.severity}"
    if old.tolerance != new.tolerance and old.tolerance is not None and new.tolerance is not None:
        sign = _stricter(old.tolerance, new.tolerance)
        if sign is None or sign:
            yield sign or 0, f"tolerance {old.tolerance} → {new.tolerance}"
    if old.share is not None and new.share is not None and old.share != new.share:
        yield (1 if new.share < old.share else -1), _amounts(old, new)


def _stricter(old: Tolerance, new: Tolerance) -> int | None:
    """1: the new one allows fewer; -1: more; 0: as many; None: they can't be compared."""
    bounds = [(_bound(one.max_violations), _bound(one.share)) for one in (old, new)]
    if all(share is None for _, share in bounds):
        first, second = (most or Fraction(0) for most, _ in bounds)
    else:
        shares = [share if share is not None else None if most else Fraction(0) for most, share in bounds]
        if shares[0] is None or shares[1] is None:
            return None
        first, second = shares[0], shares[1]
    return (first > second) - (first < second)


def _bound(value: float | None) -> Fraction | None:
    return None if value is None else Fraction(str(value))


def _columns(before: Side, after: Side, single: bool) -> Iterator[ColumnDifference]:
    if before.columns is None or after.columns is None:
        return
    olds, news = (
        {("" if single else one.table, one.name): one for one in side.columns or ()} for side in (before, after)
    )
    for key in {**olds, **news}:
        old, new = olds.get(key), news.get(key)
        if new is None:
            yield ColumnDifference("removed", old, None)
        elif old is None:
            yield ColumnDifference("added", None, new)
        else:
            if None not in (old.type, new.type) and old.type != new.type:
                yield ColumnDifference("type", old, new)
            if old.nulls is not None and new.nulls is not None and _nulls_differ(old.nulls, new.nulls):
                yield ColumnDifference("nulls", old, new)


def _nulls_differ(old: float, new: float) -> bool:
    return abs(old - new) > LEAST_NULLS or (old == 0) != (new == 0)


def _notes(side: Side) -> Iterator[str]:
    if side.kind == "result" and side.partial:
        yield f"{side.name!r} is partial: rules may be missing in it"
    if not side.listed:
        yield f"{side.name!r} lists some of its rules only: the others count as absent"


# ---------------------------------------------------------------- tables


def compare_tables(
    profiles: Sequence[Profile], tables: Sequence[Table], names: Sequence[str], options: ProfileOptions, run: Run
) -> Diff:
    """Compare two tables by their profiles: the rules that one lists are counted in the other, too.

    A rule that only A lists is lost where more of B breaks it than of A; one that only B lists is gained where more of
    A did.

    Parameters
    ----------
    profiles, tables : of A and B, both under the name of B
    names : what A and B are called
    """
    listed = [{(rule.kind, rule.text): rule for rule in listed_rules(one)} for one in profiles]
    counting = options.part(ContractCheckOptions, examples=1)
    sides, notes = [], list[str]()
    for own, other, profile, table, name in zip(listed, listed[::-1], profiles, tables, names, strict=True):
        (profiled,) = profile.tables.values()
        rules = [_as_seen(rule) for rule in own.values()]
        missing = [rule for key, rule in other.items() if key not in own]
        for checked in _check(missing, profiled.relation.name, table, options.nulls, counting, run):
            rules.append(_as_counted(checked, _as_seen(checked.rule).share))
        notes += [f"{name}: {note}" for note in profile.notes]
        rows = max(profiled.relation.all_rows, 1)
        columns = [SideColumn("", one.name, one.type, one.nulls / rows) for one in profiled.relation.columns]
        sides.append(Side(name, "table", ("",), tuple(rules), tuple(columns), partial=profile.partial))
    timings = {
        stage: sum(one.timings_seconds.get(stage, 0.0) for one in profiles) for stage in profiles[0].timings_seconds
    }
    return compare(
        sides[0], sides[1], options, notes=notes, timings_seconds=timings, device=profiles[0].device,
        device_reason=profiles[0].device_reason,
        relations=tuple(next(iter(one.tables.values())).relation for one in profiles),
    )  # fmt: skip


def _as_seen(rule: ContractRule) -> SideRule:
    """A rule as its profile saw it."""
    seen = rule.seen or {"exceptions": 0, "rows": 1}
    share = Fraction(seen["exceptions"], max(seen["rows"], 1))
    return SideRule(
        "", rule.kind, rule.text, rule.english, exceptions=seen["exceptions"], of=seen["rows"], share=share
    )


def _as_counted(checked: CheckedRule, share: Fraction | None) -> SideRule:
    """A rule as it was counted. It is kept where no larger share breaks it."""
    rule, count = checked.rule, checked.exceptions
    plain = SideRule("", rule.kind, rule.text, rule.english, why=checked.said)
    if count is None:
        return replace(plain, kept=None if checked.limited else 0)
    now = Fraction(count, max(checked.of, 1))
    kept = 2 if now <= (share or 0) else 0
    broken = checked.examples[0].record if checked.examples else None
    return replace(plain, kept=kept, exceptions=count, of=checked.of, share=now, broken_by=broken)


def _check(
    rules: Sequence[ContractRule], name: str, table: Table, nulls: Nulls, options: ContractCheckOptions, run: Run
) -> list[CheckedRule]:
    """Count rules in a table. One that its columns can't be asked, as they are of other types, counts as broken."""
    own = [replace(rule, table=name, status="accepted") for rule in rules]

    def checked(some: Sequence[ContractRule]) -> list[CheckedRule]:
        contract = Contract("", nulls, {name: ContractTable(name)}, some)
        return list(check_contract(contract, {name: table}, options, run).rules)

    try:
        return checked(own) if own else []
    except InputError:
        pass
    found = []
    for rule in own:
        try:
            found += checked([rule])
        except InputError as error:
            found.append(CheckedRule(rule, None, 0, "rows", reason=str(error.wording).splitlines()[0]))
    return found


def compare_with_table(
    contract: Contract, side: Side, table: Table, name: str, options: ProfileOptions, run: Run
) -> Diff:
    """Compare a contract of one table with a table: whether it keeps the accepted rules, and its columns.

    Raises
    ------
    InputError : for a contract of several tables
    """
    if len(contract.tables) != 1:
        hint = "check reads several tables"
        raise InputError(message("tables of a contract to compare with one table", list(contract.tables), "one", hint))
    (own,) = contract.tables
    checking = options.part(ContractCheckOptions, examples=1)
    accepted = [rule for rule in contract.accepted() if rule.kind != "ind"]
    kept = replace(contract, rules=accepted)
    found = check_contract(kept, {own: table}, checking, run)
    before, after = [], []
    for one in found.rules:
        seen = one.rule.seen or {}
        known = "exceptions" in seen and "rows" in seen
        share = Fraction(seen["exceptions"], max(seen["rows"], 1)) if known else None
        plain = SideRule(
            own, one.rule.kind, str(one.rule.form), one.rule.english, status="accepted", severity=one.rule.severity,
            tolerance=one.rule.tolerance,
        )  # fmt: skip
        before.append(replace(plain, exceptions=seen.get("exceptions"), of=seen.get("rows"), share=share))
        now = None if one.exceptions is None else Fraction(one.exceptions, max(one.of, 1))
        broken = one.examples[0].record if one.examples else None
        within = None if one.within is None else 2 * int(one.within)
        counts: dict[str, Any] = {"exceptions": one.exceptions, "of": one.of if now is not None else None, "share": now}
        after.append(replace(plain, kept=within, why=one.said, broken_by=broken, **counts))
    relation = found.relation
    rows = max(relation.all_rows, 1)
    columns = tuple(SideColumn(own, one.name, one.type, one.nulls / rows) for one in relation.columns)
    notes = [*found.notes, "rules that the contract lacks were not looked for: profile does that"]
    return compare(
        replace(side, rules=tuple(before)), Side(name, "table", (own,), tuple(after), columns), options, notes=notes,
        relations=(relation,), device=found.device, device_reason=found.device_reason,
        timings_seconds=found.timings_seconds,
    )  # fmt: skip
