"""Order dependencies decided from those that were discovered: no rows are needed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message, near_names
from tuplewise.engine.od.dependency import (
    ASCENDING,
    CONSTANT,
    DESCENDING,
    Dependencies,
    Mask,
    context_words,
    mask_of,
)
from tuplewise.engine.od.found import Discovery
from tuplewise.engine.od.lexicographic import OdCheck, SetOd, SignedColumn, each_part, ordered_pair, set_based, signed
from tuplewise.engine.od.list_od import ListOd

_KINDS = {"ascending": ASCENDING, "descending": DESCENDING}
_SAVED = "JSON that `od discover` wrote"


class SavedOds:
    """The minimal set-based order dependencies of a table, and what follows from them.

    Attributes
    ----------
    names : the table's columns; dependencies name them by position
    dependencies : Dependencies
    complete : whether all minimal ones are there (of contexts of at most `max_context` columns)
    max_context : the most columns of a context that was looked at, or None

    Notes
    -----
    `X: [] -> A` holds iff A is in X or `Y: [] -> A` was found for some Y inside X. `X: A ~ B` holds iff A or B is
    constant under X, or `Y: A ~ B` of that direction was found for some Y inside X. Both follow from what minimal means
    (Li et al., ICDE 2023, section III). An answer costs a pass over the constancies for each new
    context, and one over the contexts found for the pair; answers are kept.
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
        """What `od discover` found. Raises InputError where rows may break it (an error above 0)."""
        _refuse_error(found.options.error, found.relation.name)
        return cls(
            found.relation.column_names,
            found.dependencies,
            complete=not found.partial,
            max_context=found.options.max_context,
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SavedOds:
        """What `od discover` saved as JSON. Raises InputError as `of_document` does, and where the file is no JSON."""
        name = Path(path).name
        try:
            document = json.loads(Path(path).read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise InputError(message("saved result can't be read", str(path), hint=error.strerror)) from None
        except ValueError:
            raise InputError(message("saved result is no JSON", name, _SAVED)) from None
        return cls.of_document(document, name)

    @classmethod
    def of_document(cls, document: Any, name: str = "result") -> SavedOds:
        """The JSON object of `od discover`.

        Parameters
        ----------
        name : what errors call the document

        Raises
        ------
        InputError
            Where it is another command's, partial, approximate, cut (fewer dependencies than its count), or no result.
        """
        if not isinstance(document, Mapping) or document.get("command") != "od discover":
            what = document.get("command") if isinstance(document, Mapping) else type(document).__name__
            raise InputError(message(f"saved result {name!r} is not of od discover", what, _SAVED))
        if document.get("partial"):
            hint = "Run it again without a limit"
            raise InputError(message("saved result is partial: what it lacks may hold as well", name, hint=hint))
        try:
            options, result = document["options"], document["result"]
            names = [column["name"] for column in document["tables"][0]["columns"]]
            constant, pairs = result["constant"], result["order_compatible"]
            listed, count = len(constant) + len(pairs), int(result["count"])
            error, max_context = Decimal(str(options["error"])), options["max_context"]
            dependencies = _dependencies(constant, pairs, names)
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as fault:
            raise InputError(message(f"saved result {name!r} is not complete", fault, _SAVED)) from None
        _refuse_error(error, name)
        if listed != count:
            what = f"saved result {name!r} lists {listed:,} of its dependencies"
            raise InputError(message(what, count, hint="Save it without --limit"))
        return cls(names, dependencies, max_context=max_context)

    def holds(self, asked: SetOd) -> bool | None:
        """Whether a set-based dependency holds; None where the result does not tell, as it is limited."""
        if self.implies(asked):
            return True
        within = self.max_context is None or len(asked.context) <= self.max_context
        return False if self.complete and within else None

    def implies(self, asked: SetOd) -> bool:
        """Whether a set-based dependency follows from those that were found."""
        determined = self.determined(asked.context)
        if asked.left in determined or asked.right in determined:
            return True
        if asked.kind == CONSTANT:
            return False
        known = self._implied.get(asked)
        if known is None:
            contexts = self._pairs.get(asked[1:])
            known = contexts is not None and bool(_within(contexts, self._mask(asked.context)).any())
            self._implied[asked] = known
        return known

    def determined(self, context: frozenset[int]) -> frozenset[int]:
        """The columns on which rows that are equal on the context are known to be equal, the context's too."""
        found = self._determined.get(context)
        if found is None:
            within = _within(self._constancies.contexts, self._mask(context))
            found = self._determined[context] = context.union(self._constancies.left[within].tolist())
        return found

    def orders(self, left: Sequence[SignedColumn], right: Sequence[SignedColumn]) -> bool:
        """Whether `left -> right` is known to hold, for lists as `signed` makes them."""
        return all(map(self.implies, each_part(left, right)))

    def compatible(self, front: Sequence[SignedColumn], item: SignedColumn, other: Sequence[SignedColumn]) -> bool:
        """Whether `front` with `item` behind it is known to order no two rows the opposite way of `other`, if `front`
        alone does not."""
        columns = frozenset(c for c, _ in front)
        for j, opposite in enumerate(other):
            asked = ordered_pair(columns.union(c for c, _ in other[:j]), item, opposite)
            if asked is not None and not self.implies(asked):
                return False
        return True

    def _mask(self, context: frozenset[int]) -> Mask:
        return mask_of(sorted(context), self._words)


def check_against(saved: SavedOds | Discovery, ods: Iterable[ListOd]) -> list[OdCheck]:
    """Decide list order dependencies from what was discovered, without the table.

    Returns
    -------
    list of OdCheck
        `violation` is always None. `holds` is None where a discovery that was limited (`max_context`, a time limit)
        does not tell.

    Raises
    ------
    InputError
        For columns that the discovery did not have, with names near to them; for an approximate discovery.
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
    """What a saved or fresh discovery tells."""
    return SavedOds.of(source) if isinstance(source, Discovery) else source


def check_names(asked: Iterable[str], names: Sequence[str]) -> None:
    """Raise InputError for the first name that no column has."""
    for name in asked:
        if name not in names:
            what = "no column of that name in the discovery"
            raise InputError(message(what, name, hint=near_names(name, names)))


def _within(contexts: Mask, context: Mask) -> NDArray[np.bool_]:
    """Which of the contexts are within one."""
    found: NDArray[np.bool_] = np.all(contexts & context == contexts, axis=1)
    return found


def _refuse_error(error: Decimal, name: str) -> None:
    """Approximate dependencies imply nothing: errors add up."""
    if error != 0:
        what = f"order dependencies of {name!r} that rows may break: error"
        raise InputError(message(what, str(error), "0", "Discover them without --error"))


def _dependencies(constant: Sequence[Any], pairs: Sequence[Any], names: Sequence[str]) -> Dependencies:
    """The dependencies of a document's two lists. Raises KeyError for what is not there."""
    place = {name: position for position, name in enumerate(names)}
    rows = [(entry["context"], CONSTANT, place[entry["attribute"]], -1) for entry in constant]
    for entry in pairs:
        left, right = sorted((place[entry["left"]], place[entry["right"]]))
        rows.append((entry["context"], _KINDS[entry["direction"]], left, right))
    words = context_words(len(names))
    masks = [mask_of([place[name] for name in context], words) for context, *_ in rows]
    return Dependencies(
        np.array(masks, dtype=np.uint64).reshape(len(rows), words),
        np.array([kind for _, kind, _, _ in rows], dtype=np.int8),
        np.array([left for _, _, left, _ in rows], dtype=np.int32),
        np.array([right for _, _, _, right in rows], dtype=np.int32),
    )
