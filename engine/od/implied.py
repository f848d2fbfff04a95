"""Decision of order dependencies from discovered ones, without rows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, Wording, message, near_names
from tuplewise.engine.od.dependency import ASCENDING, CONSTANT, Dependencies, Mask, context_words, mask_of
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.lexicographic import OdCheck, SetOd, SignedColumn, each_part, ordered_pair, set_based, signed
from tuplewise.engine.od.list_od import ListOd
from tuplewise.engine.od.saved import Saved, read_document, saved_of


class SavedOds:
    """The minimal set-based order dependencies of a table, with their consequences.

    Attributes
    ----------
    names : the table's columns; dependencies name them by position
    dependencies : Dependencies
    complete : whether these are all minimal ones (with contexts of at most `max_context` columns)
    max_context : limit of columns in the contexts that were searched, or None

    Notes
    -----
    `X: [] -> A` holds iff A is in X or `Y: [] -> A` was found for some Y inside X. `X: A ~ B` holds iff A or B is
    constant under X, or `Y: A ~ B` of that direction was found for some Y inside X. Both follow from the definition of
    minimal (Li et al., ICDE 2023, section III). An answer costs a pass over the constancies for each new context, and
    one over the contexts found for the pair. Answers are cached.
    """

    def __init__(
        self,
        names: Sequence[str],
        dependencies: Dependencies,
        *,
        complete: bool = True,
        max_context: int | None = None,
    ) -> None:
        self.names, self.dependencies = tuple(names), dependencies
        self.complete, self.max_context = complete, max_context
        self._words = context_words(len(self.names))
        self._constancies = dependencies.take(dependencies.kind == CONSTANT)
        self._pairs: dict[tuple[int, int, int], Mask] = {}
        pairs = dependencies.take(dependencies.kind >= ASCENDING)
        sides = np.column_stack([pairs.kind, pairs.left, pairs.right]).astype(np.int64)
        distinct, number = np.unique(sides, axis=0, return_inverse=True)
        by_side = np.argsort(number.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(number.ravel(), minlength=len(distinct)))
        for side, of_side in zip(distinct.tolist(), np.split(pairs.contexts[by_side], ends[:-1]), strict=False):
            self._pairs[tuple(side)] = of_side
        self._determined: dict[frozenset[int], frozenset[int]] = {}
        self._implied: dict[SetOd, bool] = {}

    @classmethod
    def of(cls, found: Discovery) -> SavedOds:
        """The dependencies of a discovery. Raises InputError if they are approximate (an error above 0)."""
        saved = Saved(
            names=tuple(found.relation.column_names),
            dependencies=found.dependencies,
            error=found.options.error,
            max_context=found.options.max_context,
            partial=found.partial,
            complete_context=found.complete_context,
        )
        return cls._of(saved, found.relation.name)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SavedOds:
        """Read the JSON file of `od discover`. Raises InputError as `of_document` does, and if the file is no JSON."""
        return cls.of_document(read_document(path), Path(path).name)

    @classmethod
    def of_document(cls, document: Any, name: str = "result") -> SavedOds:
        """The dependencies of the JSON object of `od discover`.

        A partial result proves what follows from it. It disproves dependencies whose contexts have a size for which it
        is complete.

        Parameters
        ----------
        name : the name of the document in errors

        Raises
        ------
        InputError
            If it is from another command, approximate, truncated (fewer dependencies than its count), or damaged.
        """
        return cls._of(saved_of(document, name), name)

    @classmethod
    def _of(cls, saved: Saved, name: str) -> SavedOds:
        if saved.error != 0:  # what is approximate implies nothing, since errors add up
            what = f"order dependencies of {name!r} that rows may break: error"
            raise InputError(message(what, str(saved.error), "0", Wording("Discover them without {error}")))
        if not saved.partial:
            return cls(saved.names, saved.dependencies, max_context=saved.max_context)
        size = -1 if saved.complete_context is None else saved.complete_context
        return cls(saved.names, saved.dependencies, complete=size >= 0, max_context=size if size >= 0 else None)

    @property
    def limited(self) -> bool:
        """Whether there may be further dependencies: not all contexts of all sizes were searched."""
        return not self.complete or (self.max_context is not None and self.max_context < len(self.names) - 1)

    def holds(self, wanted: SetOd) -> bool | None:
        """Whether a set-based dependency holds; None if the limited result can't tell."""
        if self.implies(wanted):
            return True
        within = self.max_context is None or len(wanted.context) <= self.max_context
        return False if self.complete and within else None

    def implies(self, wanted: SetOd) -> bool:
        """Whether a set-based dependency follows from the discovered ones."""
        determined = self.determined(wanted.context)
        if wanted.left in determined or wanted.right in determined:
            return True
        if wanted.kind == CONSTANT:
            return False
        known = self._implied.get(wanted)
        if known is None:
            contexts = self._pairs.get(wanted[1:])
            known = contexts is not None and bool(_within(contexts, self._mask(wanted.context)).any())
            self._implied[wanted] = known
        return known

    def determined(self, context: frozenset[int]) -> frozenset[int]:
        """The columns that the context is known to determine, including its own."""
        found = self._determined.get(context)
        if found is None:
            within = _within(self._constancies.contexts, self._mask(context))
            found = self._determined[context] = context.union(self._constancies.left[within].tolist())
        return found

    def orders(self, left: Sequence[SignedColumn], right: Sequence[SignedColumn]) -> bool:
        """Whether `left -> right` is known to hold, for lists as `signed` makes them."""
        return all(map(self.implies, each_part(left, right)))

    def compatible(self, front: Sequence[SignedColumn], item: SignedColumn, other: Sequence[SignedColumn]) -> bool:
        """Whether `front` followed by `item` is known to be compatible with `other` (no two rows are in opposite
        orders), if `front` alone is."""
        columns = frozenset(c for c, _ in front)
        for j, opposite in enumerate(other):
            wanted = ordered_pair(columns.union(c for c, _ in other[:j]), item, opposite)
            if wanted is not None and not self.implies(wanted):
                return False
        return True

    def _mask(self, context: frozenset[int]) -> Mask:
        return mask_of(sorted(context), self._words)


def check_against(saved: SavedOds | Discovery, ods: Iterable[ListOd]) -> list[OdCheck]:
    """Decide list order dependencies from a discovery, without the table.

    Returns
    -------
    list of OdCheck
        `violation` is always None. `holds` is None if a limited discovery (`max_context`, a time limit) can't tell.

    Raises
    ------
    InputError
        For columns that are not in the discovery, with similar names; for an approximate discovery.
    """
    known = known_ods(saved)
    checks = []
    for od in ods:
        began = time.monotonic()
        check_names([item.name for item in (*od.left, *od.right)], known.names)
        left, right = (signed(side, known.names) for side in (od.left, od.right))
        verdicts = [known.holds(part) for part in set_based(left, right)]
        holds = False if False in verdicts else None if None in verdicts else True
        checks.append(OdCheck(od, holds, None, time.monotonic() - began))
    return checks


def known_ods(source: SavedOds | Discovery) -> SavedOds:
    """The dependencies of a saved or new discovery."""
    return SavedOds.of(source) if isinstance(source, Discovery) else source


def check_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Raise InputError for the first name that is no column."""
    for name in given:
        if name not in names:
            what = "no column of that name in the discovery"
            raise InputError(message(what, name, hint=near_names(name, names)))


def _within(contexts: Mask, context: Mask) -> NDArray[np.bool_]:
    """The contexts that are subsets of one context, as a mask."""
    found: NDArray[np.bool_] = np.all(contexts & context == contexts, axis=1)
    return found
