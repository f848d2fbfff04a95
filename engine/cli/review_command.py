"""The command that goes through the proposed rules of a contract."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tuplewise.engine.cli import output, settings
from tuplewise.engine.cli.listing import Written, format_of
from tuplewise.engine.cli.settings import Invocation
from tuplewise.engine.errors import InputError, number_of
from tuplewise.engine.options import option
from tuplewise.engine.report import files

if TYPE_CHECKING:
    from rich.console import Console

    from tuplewise.engine.contract.contract import Contract, ContractRule
    from tuplewise.engine.contract.review import Review


@dataclass(frozen=True, kw_only=True)
class Decisions(Written):
    """What is decided without questions."""

    accept: tuple[str, ...] = option((), "Accept the rules of these ids; all: all proposed ones.", metavar="IDS")
    reject: tuple[str, ...] = option((), "Reject the rules of these ids; all: all proposed ones.", metavar="IDS")


@click.command("review")
@click.argument("contract", metavar="FILE")
@settings.options(Decisions)
@settings.output_options()
def review(invocation: Invocation, /, contract: str, **given: Any) -> int:
    """Go through the proposed rules of a contract: accept or reject each with one key.

    Each decision is in FILE at once; comments and all else stay as they are. -o review.html writes a page with a switch
    for each rule, which hands back the file. --accept and --reject decide without questions: tuplewise review
    rules.yaml --accept all --reject fd-1f0d2cdb.
    """
    from tuplewise.engine.contract import review as reviewing

    (chosen,) = settings.made(given, Decisions)
    format_of(chosen)
    files.check_apart([chosen.output], [contract])
    if chosen.accept or chosen.reject:
        counts = reviewing.decide(contract, chosen.accept, chosen.reject)
        if not invocation.quiet:
            click.echo(_summary(counts, reviewing.Review(contract).contract), err=True)
    if chosen.output is not None:
        output.write([reviewing.page(contract)], chosen.output)
    elif not (chosen.accept or chosen.reject):
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            ways = "--accept IDS and --reject IDS decide without questions, -o review.html writes a page"
            raise click.UsageError(f"review asks for keys, and this is no terminal: {ways}.")
        _Terminal(reviewing.Review(contract)).go_through()
    return 0


def _summary(counts: Mapping[str, int], contract: Contract) -> str:
    """What was decided, and what is left."""
    left = sum(rule.status == "proposed" for rule in contract.rules)
    said = [f"{counts[word]:,} {word}" for word in ("accepted", "rejected", "skipped") if counts[word]]
    rest = f"{number_of(left, 'rule')} still proposed in {contract.name!r}"
    return f"{', '.join(said) or 'nothing decided'}; {rest}"


_KEYS = {"a": "accept", "r": "reject", "s": "skip", "b": "back", "q": "quit"}


class _Terminal:
    """A review in the terminal."""

    def __init__(self, review: Review) -> None:
        from rich.console import Console

        self._review = review
        self._console: Console = Console(highlight=False, markup=False, emoji=False, legacy_windows=False)

    def go_through(self) -> None:
        """Ask until all rules are decided or the reader leaves, then say what was decided."""
        if not self._review.count:
            self._console.print("No rule is proposed.")
        shown = None
        while (rule := self._review.rule) is not None:
            if shown != self._review.number:
                shown = self._review.number
                self._show(rule)
            word = self._key()
            if word == "quit":
                break
            try:
                if self._do(word):
                    shown = None
            except InputError as error:
                self._say(f"not written: {error}", "red")
        self._console.print()
        self._console.print(_summary(self._review.counts(), self._review.contract))

    def _do(self, word: str) -> bool:
        """Do what a key stands for. Returns whether a rule is to be shown anew."""
        if word == "back":
            gone = self._review.back()
            self._say("the last decision is undone" if gone else "there is nothing to undo", "yellow")
            return gone
        if word == "skip":
            self._review.skip()
            self._say("skipped", "yellow")
        elif word == "accept":
            self._review.decide("accepted")
            self._say("accepted", "green")
        else:
            self._review.decide("rejected")
            self._say("rejected", "red")
        return True

    def _key(self) -> str:
        """The word of the next key that stands for one."""
        while True:
            try:
                word = _KEYS.get(click.getchar().lower())
            except EOFError:
                word = "quit"
            if word is not None:
                return word

    def _say(self, text: str, style: str) -> None:
        from rich.text import Text

        self._console.print(Text(f"  {text}", style=style))

    def _show(self, rule: ContractRule) -> None:
        """Print a rule with all that is known of it, and the keys."""
        from rich.padding import Padding
        from rich.rule import Rule
        from rich.text import Text

        from tuplewise.engine.report.text import named_parts, visible

        said = Text()
        for part, named in named_parts(visible(rule.english)):
            said.append(part, style="cyan" if named else "")
        keys = Text("  ")
        for key, word in _KEYS.items():
            keys.append(key, style="bold").append(f" {word}   ", style="dim")
        place = f"{self._review.number:,} of {self._review.count:,}"
        title = Text(" · ".join(filter(None, (place, visible(rule.table), rule.kind))), style="bold")
        print_ = self._console.print
        print_()
        print_(Rule(title, align="left", style="dim"))
        print_(Padding(Text(visible(rule.text), style="bold"), (0, 0, 0, 2)))
        if rule.english:
            print_(Padding(said, (0, 0, 0, 2)))
        print_(Padding(_facts(rule), (0, 0, 0, 2)))
        print_(keys)


def _facts(rule: ContractRule) -> Any:
    """What was seen of a rule, and what it allows, as a table without lines."""
    from rich.table import Table
    from rich.text import Text

    from tuplewise.engine.report.text import percent, strength, visible

    seen = rule.seen or {}
    lines = []
    if seen:
        rows, exceptions = seen.get("rows"), seen.get("exceptions")
        things = "value" if rule.kind == "ind" else "row"
        parts = [] if rows is None else [number_of(rows, things)]
        if exceptions is not None:
            share = f" ({percent(exceptions / rows)})" if exceptions and rows else ""
            parts.append(f"{number_of(exceptions, 'exception')}{share}" if exceptions else "no exception")
        parts += [f"evidence {seen['evidence']:,.0f}"] if "evidence" in seen else []
        parts += [f"strength {strength(seen['strength'])}"] if "strength" in seen else []
        lines.append(("seen", ", ".join(parts)))
    lines += [("", visible(example)) for example in seen.get("examples", ())]
    allowed = "no exception" if str(rule.tolerance) == "0" else str(rule.tolerance)
    lines.append(("allowed", allowed + (", a warning beyond that" if rule.severity == "warning" else "")))
    lines += [("owner", visible(rule.owner))] if rule.owner else []
    lines += [("note", visible(rule.note))] if rule.note else []
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in lines:
        table.add_row(Text(name), Text(value))
    return table
