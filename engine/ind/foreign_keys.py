"""Evidence that an inclusion dependency is a foreign key: coverage, names, key-ness; and one score for ranking."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

from tuplewise.engine.ind.dependency import Attribute
from tuplewise.engine.ind.found import FoundInd, FoundInds, TableFound
from tuplewise.engine.ind.values import family_of

NAMES_WEIGHT, COVERAGE_WEIGHT, TEXT_WEIGHT = 0.5, 0.3, 0.2

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_GENERIC = frozenset({"id", "ids", "key", "keys", "no", "nr", "num", "number", "code", "pk", "fk", "ref", "name"})
_ENDINGS = ("key", "code", "number", "num")
_LONGEST = 64  # length of names in comparisons


@dataclass(frozen=True, slots=True)
class ForeignKeyEvidence:
    """Evidence that a dependency is a foreign key, each number from 0 to 1.

    Attributes
    ----------
    coverage : share of the referenced side's distinct values that the dependent side uses
    name_likeness : similarity of the names, see `words_likeness`; the mean over several columns
    key : distinct values of the referenced side, divided by the rows of its table
    unique : whether the referenced side is a key without nulls
    score : `key * (0.5 * name_likeness + 0.3 * coverage + 0.2 * text)`; text is the share of column pairs of text

    Notes
    -----
    The features are among those of Rostin, Albrecht, Bauckmann, Naumann, Leser, "A machine learning approach to foreign
    key discovery", WebDB 2009; the score is ours, its weights are set, not learned. A foreign key refers to a key,
    so key-ness multiplies the rest. Small whole numbers are often included by chance, with little coverage, in a column
    that counts rows; text hardly ever is. So numbers need names or coverage, and text has a lead.
    """

    coverage: float
    name_likeness: float
    key: float
    unique: bool
    score: float


class Evidence:
    """Finder of foreign key evidence for the dependencies between some tables.

    Parameters
    ----------
    tables : all tables, with their columns
    """

    def __init__(self, tables: Iterable[TableFound]) -> None:
        self._tables = {table.name: table for table in tables}
        self._words: dict[Attribute, tuple[str, ...]] = {}
        for table in self._tables.values():
            names = [column.name for column in table.columns]
            for name, words in zip(names, own_words(names), strict=True):
                self._words[Attribute(table.name, name)] = specific_words(words, table.name)
        self._text = {
            Attribute(table.name, column.name): family_of(column.type) == "text"
            for table in self._tables.values()
            for column in table.columns
        }

    def of(self, found: FoundInd, referenced_rows: int | None = None) -> ForeignKeyEvidence:
        """Evidence for one dependency. `referenced_rows`: rows without a null on its referenced side, if known; for a
        single column it is computed."""
        ind = found.ind
        table = self._tables[ind.referenced[0].table]
        if referenced_rows is None and ind.size == 1:
            column = next(c for c in table.columns if c.name == ind.referenced[0].column)
            referenced_rows = table.rows - column.nulls
        used = found.dependent_distinct - found.missing_values
        coverage = used / found.referenced_distinct if found.referenced_distinct else 0.0
        pairs = zip(ind.dependent, ind.referenced, strict=True)
        names = sum(words_likeness(self._words[a], self._words[b]) for a, b in pairs) / ind.size
        text = sum(self._text[a] and self._text[b] for a, b in zip(ind.dependent, ind.referenced, strict=True))
        key = found.referenced_distinct / table.rows if table.rows else 0.0
        score = key * (NAMES_WEIGHT * names + COVERAGE_WEIGHT * coverage + TEXT_WEIGHT * text / ind.size)
        unique = found.referenced_distinct == referenced_rows == table.rows
        return ForeignKeyEvidence(coverage, names, key, unique, score)


def with_evidence(found: FoundInds) -> FoundInds:
    """The same results, with evidence for each dependency."""
    evidence = Evidence(found.tables)
    judged = (one if one.evidence is not None else replace(one, evidence=evidence.of(one)) for one in found.inds)
    return replace(found, inds=tuple(judged))


def ranked(inds: Sequence[FoundInd]) -> list[FoundInd]:
    """The dependencies, likeliest foreign keys first; equal scores keep the given order."""
    return sorted(inds, key=lambda found: -found.evidence.score)


def own_words(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of each column of a table, without those that all of them begin with (TPC-H's `l_`)."""
    words = [_words(name) for name in names]
    front = 0
    while len(words) > 1 and all(len(w) > front + 1 for w in words) and len({w[front] for w in words}) == 1:
        front += 1
    return [w[front:] for w in words]


def specific_words(words: Sequence[str], table: str) -> tuple[str, ...]:
    """The words that do more than mean an identifier (id, key, code, number); those of the table's name if there are
    none (`customers.id`: customer)."""
    kept = [_without_ending(w) for w in words if w not in _GENERIC]
    return tuple(map(_singular, kept or _words(table) or words))


@lru_cache(maxsize=1 << 16)
def words_likeness(dependent: tuple[str, ...], referenced: tuple[str, ...]) -> float:
    """Similarity of the names of two columns, 0 to 1, by their words (`own_words`, `specific_words`).

    1 for the same words, 0.9 if those of the referenced column are among the dependent one's, 0.8 if one begins with
    the other, else 2r - 1 if that is above 0, where r is the share of characters in matching blocks (Python's difflib).
    """
    left, right = "".join(dependent)[:_LONGEST], "".join(referenced)[:_LONGEST]
    if left == right:
        return 1.0
    if set(referenced) <= set(dependent):
        return 0.9
    if min(len(left), len(right)) >= 3 and (left.startswith(right) or right.startswith(left)):
        return 0.8
    ratio = SequenceMatcher(None, left, right, autojunk=False).ratio()
    return max(0.0, 2 * ratio - 1)


def _words(name: str) -> tuple[str, ...]:
    """`customerId`, `customer_id` and `Customer ID` are two words each."""
    return tuple(word.casefold() for word in _WORD.findall(name))


def _without_ending(word: str) -> str:
    """`orderkey`: order."""
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) > len(e) + 1), "")
    return word.removesuffix(ending)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
