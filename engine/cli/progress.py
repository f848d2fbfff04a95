"""The progress of a command on stderr, for terminals only: the step, and the share of it that is done."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

import click

_STEPS = {
    "evidence": "comparing pairs of rows",
    "sample": "comparing random pairs of rows",
    "focused_sample": "comparing pairs of neighbouring rows",
    "inversion": "searching constraints",
    "searching": "searching constraints, comparing the pairs that settle them",
    "refinement": "looking for pairs that violate constraints",
    "checking": "checking rules",
    "space": "choosing what is compared",
    "discovery": "searching constraints",
    "indexes": "choosing how later rows are looked up",
}

FIRST_COUNT_SECONDS, COUNT_SECONDS = 4.0, 2.0  # when what was found is first shown, and how often then


class Progress:
    """A line on stderr that follows the work; nothing where stderr is no terminal, or with `quiet`."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._shown: str | None = None
        self._beside: str | None = None
        self._found: tuple[str | None, str] = (None, "")  # a step, and how many it has found
        self._counts_from = 0.0
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, name: str) -> None:
        """Begin a step of unknown length."""
        if self._bar is not None:
            self._shown = name
            self._bar.update(self._task, description=self._description, total=None)

    def share(self, name: str, share: float) -> None:
        """Show the share of a step that is done (0 to 1)."""
        if self._bar is not None:
            if name != self._shown:
                self._shown = name
                self._bar.reset(self._task, description=self._description)
            self._bar.update(self._task, total=1.0, completed=share)

    def beside(self, name: str | None) -> None:
        """Show work that runs beside the steps; None ends it."""
        self._beside = name
        if self._bar is not None:
            self._bar.update(self._task, description=self._description)

    def found(self, count: int, hint: str) -> None:
        """Show, every few seconds of a long step, how many constraints it has found, and a hint."""
        if self._bar is None:
            return
        now = time.monotonic()
        if self._found[0] != self._shown:
            self._found, self._counts_from = (self._shown, ""), now + FIRST_COUNT_SECONDS
        if now >= self._counts_from:
            self._counts_from = now + COUNT_SECONDS
            self._found = self._shown, f"{count:,} so far{hint}"
            self._bar.update(self._task, description=self._description)

    @property
    def _description(self) -> str:
        step, found = self._found
        parts = [_STEPS.get(name, name) for name in (self._shown, self._beside) if name]
        return "; ".join([*parts, *([found] if found and step == self._shown else [])])

    def say(self, text: str) -> None:
        """Print one line to stderr, above the bar."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            click.echo(text, err=True)
