"""How values of options are written on a command line: sizes, names, numbers, assignments."""

from __future__ import annotations

import csv
import re
from decimal import Decimal
from typing import Any

import click

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Bytes(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: 500000000, 512M, 4G (binary units)."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", str(value), re.IGNORECASE | re.ASCII)
        if match is None:
            self.fail(f"{value!r} is not a size such as 500000000, 512M or 4G", param, ctx)
        return int(Decimal(match[1]) * _UNITS[match[2].lower()])


class Names(click.ParamType):  # type: ignore[type-arg]
    """Column names separated by commas. A name with a comma stands in double quotes."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        try:
            rows = list(csv.reader([value], strict=True, skipinitialspace=True))
        except csv.Error as error:
            self.fail(f"{value!r} is not a list of names: {error}", param, ctx)
        names = tuple(rows[0]) if rows else ()
        if not names:
            self.fail("no name is given", param, ctx)
        return names


class WholeNumbers(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers, 0 or more, separated by commas."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        texts = [text.strip() for text in str(value).split(",")]
        for text in texts:
            if not re.fullmatch("[0-9]{1,18}", text):
                self.fail(f"{text!r} is not a whole number; numbers are written as 3,7", param, ctx)
        return tuple(map(int, texts))


class Assignment(click.ParamType):  # type: ignore[type-arg]
    """`name=value`. The name ends at the last `=`, or at the first one if `first` is set."""

    name = "name=value"

    def __init__(self, example: str, first: bool = False) -> None:
        self._example, self._first = example, first

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, given = value.partition("=") if self._first else value.rpartition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not of the form {self._example}", param, ctx)
        return name, given
