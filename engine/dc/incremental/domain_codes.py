"""Values of one domain with codes that keep their order and leave room for more.

Codes are whole numbers from 0 to 2**30 - 1. Initial values are spread evenly over the middle half, so that there is
room for values before the first and beyond the last; these continue with the initial distance. A value between two
others gets a code between theirs, in the middle if it is the only new one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.keys import (
    MOST_DIGITS,
    Keys,
    Numbers,
    PlainKey,
    Texts,
    WideNumbers,
    at_scale,
    digits_at,
    keys_of_plain,
    merged,
    too_many_digits,
    united,
)
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.relation import Domain
from tuplewise.gpu_kernels.compiled import kernel

CODES = 1 << 30
_FIRST, _SPAN = CODES // 4, CODES // 2
_FEW = 64  # up to this many values are kept one by one
_MOST_SINGLE = 4096
_GROWTH = 4
_SHARE = 64  # one batch takes at most 1 / 64 of the room beyond the last code
_REMEMBERED = 1 << 16
_SURE_SCALE = MOST_DIGITS - 19  # whole numbers of 64 bits have at most 19 digits
_FIRST_NANO, _LAST_NANO = -(1 << 63) // 1000 + 1, (1 << 63) // 1000 - 1  # in microseconds


class NoCodeLeft(Exception):
    """No room between two codes for the values that belong there."""


@dataclass(frozen=True, eq=False)
class CodedKeys:
    """Ascending keys and their codes, int32 (n,)."""

    keys: Keys
    codes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.codes)


class DomainCodes:
    """The dictionary of one domain.

    Parameters
    ----------
    base : keys of the last checkpoint; arrays may be memory-mapped files
    decimal_type : numbers are decimals, even if all are whole

    Notes
    -----
    Newer values are in runs, each more than four times as long as the next; the latest are kept one by one. The
    neighbours of a new value are the nearest keys of all lists. A look-up costs a search of the base and of each run.
    """

    def __init__(self, domain: Domain, base: CodedKeys, *, decimal_type: bool = False) -> None:
        self.domain, self.decimal_type = domain, decimal_type
        self._start(base)

    def _start(self, base: CodedKeys) -> None:
        self._base = base
        self._runs: list[CodedKeys] = []
        self._single_keys: list[PlainKey] = []
        self._single_codes: list[int] = []
        self._known: dict[PlainKey, int] = {}  # single keys, and recently looked up ones
        self._step = _step(len(base))
        self.scale = base.keys.scale  # the largest of all keys
        self.wide = isinstance(base.keys, WideNumbers)

    @classmethod
    def spread(cls, domain: Domain, keys: Keys, *, decimal_type: bool = False) -> DomainCodes:
        """Make a dictionary of ascending keys with evenly spread codes."""
        return cls(domain, CodedKeys(keys, even_codes(len(keys))), decimal_type=decimal_type)

    def __len__(self) -> int:
        return sum(map(len, self._lists())) + len(self._single_keys)

    def _lists(self) -> list[CodedKeys]:
        return [self._base, *self._runs]

    def ends(self) -> tuple[PlainKey, PlainKey] | None:
        """The least and the greatest key."""
        runs = [run.keys.take(np.array([0, len(run) - 1])).plain() for run in self._lists_with_single() if len(run)]
        if not runs:
            return None
        return min(low for low, _ in runs), max(high for _, high in runs)  # type: ignore[type-var]

    def code(self, key: PlainKey) -> int:
        """The code of a key; -1 for an unknown key."""
        found = self.find(key)
        return found if isinstance(found, int) else -1

    def find(self, key: PlainKey) -> int | tuple[int, int]:
        """The code of a key; for an unknown key, the codes before it (or -1) and after it (or CODES)."""
        found = self._known.get(key)
        if found is not None:
            return found
        low, high = -1, CODES
        for run in self._lists():
            place, equal = run.keys.find(key)
            if equal:
                code: int = run.codes.item(place)
                if len(self._known) >= _REMEMBERED:
                    self._known = dict(zip(self._single_keys, self._single_codes, strict=True))
                self._known[key] = code
                return code
            if place and (code := run.codes.item(place - 1)) > low:
                low = code
            if place < len(run.codes) and (code := run.codes.item(place)) < high:
                high = code
        place = bisect_left(self._single_keys, key)  # type: ignore[type-var]
        if place:
            low = max(low, self._single_codes[place - 1])
        if place < len(self._single_codes):
            high = min(high, self._single_codes[place])
        return low, high

    def codes(self, keys: Keys) -> NDArray[np.int32]:
        """Codes of ascending keys; -1 for unknown keys. int32 (k,)."""
        return self._searched(keys)[0]

    def codes_between(self, keys: Keys) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """`codes`, and possible codes for the unknown keys among them. Raises NoCodeLeft."""
        codes, lows, highs = self._searched(keys)
        unknown = np.flatnonzero(codes < 0)
        codes[unknown] = spread_between(lows[unknown], highs[unknown], self._step)
        return codes, unknown

    def _searched(self, keys: Keys) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Codes of ascending keys or -1, and the codes of the known keys before (or -1) and after them (or CODES)."""
        codes = np.full(len(keys), -1, dtype=np.int32)
        lows = np.full(len(keys), -1, dtype=np.int32)
        highs = np.full(len(keys), CODES, dtype=np.int32)
        for run in self._lists_with_single():
            if not len(run):
                continue
            places, equal = run.keys.search(keys)
            codes[equal] = run.codes[places[equal]]
            before = np.where(places > 0, run.codes[places - 1], np.int32(-1))
            behind = np.where(places < len(run), run.codes[np.minimum(places, len(run) - 1)], np.int32(CODES))
            np.maximum(lows, before, out=lows)
            np.minimum(highs, behind, out=highs)
        return codes, lows, highs

    def _lists_with_single(self) -> list[CodedKeys]:
        if not self._single_keys:
            return self._lists()
        single = CodedKeys(keys_of_plain(self.domain, self._single_keys), np.array(self._single_codes, dtype=np.int32))
        return [*self._lists(), single]

    def new_codes(self, between: Sequence[tuple[int, int]]) -> NDArray[np.int32]:
        """Possible codes for ascending unknown keys, from their results of `find`. int32 (k,). Raises NoCodeLeft."""
        lows, highs = np.array(between, dtype=np.int32).reshape(-1, 2).T.copy()
        return spread_between(lows, highs, self._step)

    def add(self, run: CodedKeys) -> None:
        """Add unknown keys, with codes from the methods above."""
        keys, codes = run.keys, run.codes
        self.scale = max(self.scale, keys.scale)
        self.wide = self.wide or isinstance(keys, WideNumbers)
        if len(keys) > _FEW:
            self._add_run(run)
            return
        for key, code in zip(keys.plain(), codes.tolist(), strict=True):
            place = bisect_left(self._single_keys, key)  # type: ignore[type-var]
            self._single_keys.insert(place, key)
            self._single_codes.insert(place, code)
            self._known[key] = code
        if len(self._single_keys) > _MOST_SINGLE:
            single = self._lists_with_single()[-1]
            self._single_keys, self._single_codes = [], []
            self._add_run(single)

    def _add_run(self, run: CodedKeys) -> None:
        while self._runs and len(self._runs[-1]) <= _GROWTH * len(run):
            run = _merged(self._runs.pop(), run)
        self._runs.append(run)

    def whole(self) -> CodedKeys:
        """All keys in one list."""
        lists = self._lists_with_single()
        while len(lists) > 1:
            last = lists.pop()
            lists[-1] = _merged(lists[-1], last)
        return lists[0]

    def respread(self, wanted: Keys | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Respread all codes evenly, with room for wanted keys (ascending). Returns old codes, ascending, and new."""
        run = self.whole()
        places = np.arange(len(run), dtype=np.int64)
        many = len(run)
        if wanted is not None:
            unknown = wanted.take(np.flatnonzero(self.codes(wanted) < 0))
            places += np.searchsorted(run.keys.search(unknown)[0], places, side="right")
            many += len(unknown)
        codes = even_codes(many)[places]
        self._start(CodedKeys(run.keys, codes))
        self._step = _step(many)
        return run.codes, codes

    def keys(self, codes: NDArray[np.int32]) -> Keys:
        """Keys of codes, in the order of the codes given. Raises KeyError for a code without a key."""
        parts, order = [], np.full(len(codes), -1, dtype=np.int64)
        taken = 0
        for run in self._lists_with_single():
            places = np.minimum(run.codes.searchsorted(codes), max(len(run) - 1, 0))
            hit = np.flatnonzero(run.codes[places] == codes) if len(run) else np.empty(0, dtype=np.int64)
            if len(hit):
                parts.append(run.keys.take(places[hit]))
                order[hit] = taken + np.arange(len(hit))
                taken += len(hit)
        if taken < len(codes):
            raise KeyError(f"no {self.domain} has the code {codes[order < 0][0]}")
        if not parts:
            return at_scale(self._base.keys.take(np.empty(0, dtype=np.int64)), self.scale)
        return at_scale(united(parts).take(order), self.scale)


def _merged(left: CodedKeys, right: CodedKeys) -> CodedKeys:
    keys, order = merged(left.keys, right.keys)
    return CodedKeys(keys, np.concatenate([left.codes, right.codes])[order])


def refuse_unlike(kept: DomainCodes, keys: Keys) -> None:
    """Raise InputError if new values and kept values have no common type.

    This happens if some timestamps need nanoseconds and others are outside the range of nanosecond timestamps, or if
    numbers have more than 76 digits at the largest scale of all.
    """
    scale = max(keys.scale, kept.scale)
    instants = kept.domain == "timestamp" and scale > 0
    if not instants and not kept.wide and isinstance(keys, (Numbers, Texts)) and scale <= _SURE_SCALE:
        return
    new = keys.take(np.array([0, len(keys) - 1])).plain()
    for low, high in (kept.ends() or new, new):
        if instants and (low < _FIRST_NANO or high > _LAST_NANO):  # type: ignore[operator]
            fault, allowed = "timestamps in nanoseconds and others outside of the years 1677 to 2262", "one of both"
            raise InputError(message(fault, None, f"{allowed} in a state", "Nothing was applied"))
        if not instants and max(digits_at(low, scale), digits_at(high, scale)) > MOST_DIGITS:
            raise too_many_digits(scale)


def _step(values: int) -> int:
    return max(1, _SPAN // max(values, 1))


def even_codes(values: int) -> NDArray[np.int32]:
    """Codes of `values` values, spread evenly over the middle half of all codes. int32 (values,), ascending."""
    if values > _SPAN:
        raise InputError(message("more distinct values of a kind than a state has room for", values, f"up to {_SPAN}"))
    twice = 2 * np.arange(values, dtype=np.int64) + 1
    return (_FIRST + twice * _SPAN // (2 * max(values, 1))).astype(np.int32)


def spread_between(lows: NDArray[np.int32], highs: NDArray[np.int32], step: int) -> NDArray[np.int32]:
    """Codes of ascending values, each between a low and a high code (-1 and CODES: no neighbour). int32 (k,).

    Values between the same two codes are spread evenly. Beyond the last code and before the first, they follow at
    distance `step`, or less as room gets scarce. Raises NoCodeLeft.
    """
    codes = np.empty(len(lows), dtype=np.int32)
    if not _spread_between(lows, highs, step, codes):
        raise NoCodeLeft
    return codes


@kernel("int32[::1], int32[::1], int64, int32[::1]")
def _spread_between(lows, highs, step, codes):  # type: ignore[no-untyped-def]
    """Fill in the codes; False if there is no room."""
    start = 0
    while start < len(lows):
        low, high = np.int64(lows[start]), np.int64(highs[start])
        stop = start + 1
        while stop < len(lows) and lows[stop] == low and highs[stop] == high:
            stop += 1
        count, room = stop - start, high - low - 1
        if count > room:
            return False
        pace = max(1, min(step, room // (_SHARE * count)))
        for i in range(count):
            if low < 0 and high == CODES:
                codes[start + i] = _FIRST + (2 * i + 1) * _SPAN // (2 * count)
            elif low < 0:
                codes[start + i] = high - pace * (count - i)
            elif high == CODES:
                codes[start + i] = low + pace * (i + 1)
            else:
                codes[start + i] = low + (i + 1) * (room + 1) // (count + 1)
        start = stop
    return True
