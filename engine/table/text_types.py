"""Types of text columns: the kinds of spelling, and the type that a column with given counts of them gets.

The rules are stated here once: regular expressions with the same meaning in RE2 (Arrow) and Java (Spark), and a
decision over counts of spellings. `arrow_text` counts in this process, `spark_text` in Spark; both then call `decide`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tuplewise.engine.errors import Wording
from tuplewise.engine.table.relation import TypeName

Spelling = Literal[
    "integer15",  # up to 15 digits: a double holds it exactly
    "integer64",  # fits 64 bits
    "integer38",  # up to 38 digits: a decimal holds it
    "integer_more",
    "decimal15",
    "decimal17",  # up to 17 digits, the most that are written for a double
    "decimal38",
    "decimal_more",
    "exponent",  # up to 17 digits, neither too large nor too small for a double
    "exponent_more",
    "date",
    "timestamp",
    "boolean",
    "zeros",  # a number with leading zeros
    "comma",  # a number with a decimal comma
    "comma_groups",  # such a number whose thousands are grouped by points
    "groups",  # a number whose thousands are grouped by commas; 1,234 may be either
    "other",
]

WHOLE_EXPONENT = r"-?(0|[1-9][0-9]*)[eE][+-]?[0-9]+"  # numbers, and codes such as 12E4
BOOLEAN = r"([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])"
_YEAR = r"(000[1-9]|00[1-9][0-9]|0[1-9][0-9][0-9]|[1-9][0-9][0-9][0-9])"
DATE = _YEAR + r"-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6}0{0,12})?)?"
_ZONE = r"(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?|[+-]18(:?00)?)?"
TIMESTAMP = DATE + r"[T ]" + _CLOCK + _ZONE
PATTERNS: dict[str, str] = {
    "integer": r"-?(0|[1-9][0-9]*)",
    "decimal": r"-?(0|[1-9][0-9]*)\.[0-9]+",
    "exponent": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?[eE][+-]?[0-9]+",
    "date": DATE,
    "timestamp": TIMESTAMP,
    "boolean": BOOLEAN,
    "zeros": r"[+-]?0[0-9]+(\.[0-9]+)?",
    "groups": r"-?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?",
    "comma": r"-?[0-9]+,[0-9]+",
    "comma_groups": r"-?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+",
}
"""The first pattern that a value matches tells its spelling; those of numbers are told apart by their digits, and dates
and timestamps whose day no month has are "other"."""

# Text that fits a requested type. It may be spelled more loosely than text whose type is inferred.
FITS: dict[TypeName, str] = {
    "integer": r"[+-]?[0-9]+",
    "decimal": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)",
    "double": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
    r"|[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)",
    "date": DATE,
    "timestamp": f"({DATE}|{TIMESTAMP})",
    "boolean": BOOLEAN,
}
WHAT_FITS: dict[TypeName, str] = {
    "integer": "digits with or without a sign, at most 38",
    "decimal": "digits with or without a point, at most 38",
    "double": "a number, NaN or inf",
    "date": "YYYY-MM-DD",
    "timestamp": "ISO 8601, up to microseconds",
    "boolean": "true or false",
}

INTEGERS_64: tuple[Spelling, ...] = ("integer15", "integer64")
INTEGERS_38: tuple[Spelling, ...] = (*INTEGERS_64, "integer38")
INTEGERS: tuple[Spelling, ...] = (*INTEGERS_38, "integer_more")
DECIMALS_38: tuple[Spelling, ...] = ("decimal15", "decimal17", "decimal38")
DECIMALS: tuple[Spelling, ...] = (*DECIMALS_38, "decimal_more")
NO_VALUES = "no values"
NUMBERS: tuple[Spelling, ...] = (*INTEGERS, *DECIMALS, "exponent", "exponent_more")
WITH_COMMAS: tuple[Spelling, ...] = ("comma", "comma_groups", "groups")


@dataclass(frozen=True, slots=True)
class SpellingCount:
    """The number of rows with a spelling, and the lowest such value by bytes."""

    rows: int
    example: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The type of a text column, the reason, and a note if the user should check it."""

    type: TypeName
    why: str
    note: str | None = None


def decide(name: str, counts: Mapping[Spelling, SpellingCount]) -> Decision:
    """Decide the type of a column: the first type that all values fit, else text.

    Notes
    -----
    Whole and fractional numbers together are doubles, unless one has more digits than a double certainly keeps: 15, or
    17 if numbers with an exponent show that doubles were written. Then they are decimals of up to 38 digits, or text.
    So different values never become equal.
    """
    total = sum(c.rows for c in counts.values())
    if total == 0:
        return Decision("text", NO_VALUES)

    def all_of(*spellings: Spelling) -> bool:
        return sum(counts[s].rows for s in spellings if s in counts) == total

    if all_of(*INTEGERS_64):
        return Decision("integer", "every value is a whole number")
    if all_of(*INTEGERS_38):
        return Decision(
            "decimal", f"every value is a whole number, some beyond 64 bits, e.g. {_example(counts, 'integer38')}"
        )
    if all_of(*DECIMALS_38):
        return Decision("decimal", "every value is a number with a decimal point")
    if all_of("integer15", "decimal15"):
        return Decision("double", "whole numbers and numbers with a decimal point")
    if all_of("integer15", "decimal15", "decimal17", "exponent"):
        if "exponent" in counts:
            return Decision("double", f"numbers, some with an exponent, e.g. {_example(counts, 'exponent')}")
        return Decision("decimal", "whole and fractional numbers, some with more digits than a double keeps")
    if all_of(*INTEGERS_38, *DECIMALS_38):
        return Decision("decimal", "whole and fractional numbers, some with more digits than a double keeps")
    for type_, why in (("date", "a date"), ("timestamp", "a timestamp"), ("boolean", "true or false")):
        if all_of(type_):  # type: ignore[arg-type]
            return Decision(type_, f"every value is {why}")  # type: ignore[arg-type]
    return _text(name, counts, total)


def may_be_codes(decision: Decision, counts: Mapping[Spelling, SpellingCount]) -> bool:
    """Whether the column has whole numbers and numbers with an exponent, which may both be codes."""
    return decision.type == "double" and "exponent" in counts and "integer15" in counts


def as_codes(name: str, one: str, other: str) -> Decision:
    """The decision for text because two values are the same number, for example part numbers `12E4` and `120000`."""
    both = f"{quote(one)} and {quote(other)}"
    note = Wording("column {}: {} would be the same number: read as text ({types} can say double)", repr(name), both)
    return Decision("text", f"values that differ and would be the same number, e.g. {both}", note)


def _text(name: str, counts: Mapping[Spelling, SpellingCount], total: int) -> Decision:
    commas = _numbers_with_commas(name, counts, total)
    if commas is not None:
        return commas
    numbers = sum(counts[s].rows for s in NUMBERS if s in counts)
    if "zeros" in counts and numbers + counts["zeros"].rows == total:
        return Decision(
            "text", f"numbers with leading zeros, which a number would lose, e.g. {_example(counts, 'zeros')}"
        )
    if numbers == total:
        longest: tuple[Spelling, ...] = (
            *(s for s in NUMBERS if s.endswith("_more")),
            "decimal38",
            "integer38",
            "integer64",
        )
        spelling = next((s for s in longest if s in counts), next(iter(counts)))
        return Decision("text", f"numbers with more digits than a number type keeps, e.g. {_example(counts, spelling)}")
    if numbers:
        odd = [c.example for s, c in sorted(counts.items()) if s not in NUMBERS][:3]
        plain = min(counts[s].example for s in NUMBERS if s in counts)
        examples = ", ".join(quote(v) for v in odd)
        why = f"{total - numbers} of {total} values are not numbers, e.g. {examples}"
        note = None
        if 2 * numbers >= total:
            note = f"column {name!r} mixes numbers (e.g. {quote(plain)}) and text (e.g. {examples}): read as text"
        return Decision("text", why, note)
    kinds = sorted(s for s in counts if s != "other")
    if kinds and "other" not in counts:
        return Decision("text", "values of several types, e.g. " + ", ".join(_example(counts, s) for s in kinds))
    return Decision("text", f"text, e.g. {_example(counts, 'other')}")


def _numbers_with_commas(name: str, counts: Mapping[Spelling, SpellingCount], total: int) -> Decision | None:
    """The decision for text, with a note on options that read it as numbers; None if other values occur."""
    found: list[Spelling] = [s for s in WITH_COMMAS if s in counts]
    plain = (*INTEGERS, *(DECIMALS if found == ["groups"] else ()))
    if not found or sum(counts[s].rows for s in (*found, *plain) if s in counts) < total:
        return None
    example = _example(counts, found[0])
    if found == ["groups"]:
        how = "{thousands} reads them, or {decimal} where the comma is a decimal one"
        marks = {"thousands": ",", "decimal": ","}
    else:
        how = "{decimal} with {thousands} reads them" if "comma_groups" in found else "{decimal} reads them"
        marks = {"thousands": ".", "decimal": ","}
    what = f"column {name!r} holds numbers with commas (e.g. {example}), read as text"
    return Decision("text", f"numbers with commas, e.g. {example}", Wording("{}: {}", what, Wording(how, **marks)))


def note_on_no_values(column: str) -> str:
    """What is said of a column of a new state whose type no value told."""
    text = "column {} has no values: its type is text from now on; {types} fixes another"
    return Wording(text, repr(column), types={"COL": "TYPE"})


def quote(value: str) -> str:
    """A value for messages: quoted, and shortened if it is long."""
    return repr(value if len(value) <= 40 else value[:37] + "...")


def _example(counts: Mapping[Spelling, SpellingCount], spelling: Spelling) -> str:
    return quote(counts[spelling].example)
