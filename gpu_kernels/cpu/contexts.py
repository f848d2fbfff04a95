"""Minimal contexts of many targets over bitmaps of difference sets.

The *difference set* of a clue holds the attributes on which its two rows differ. Few difference sets have many clues:
clues are grouped by them, and contexts are tested against the groups.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.control import Control
from tuplewise.gpu_kernels.cpu.arrays import copy, joined, sort
from tuplewise.gpu_kernels.cpu.bits import lowest_bit
from tuplewise.gpu_kernels.cpu.hitting_extend import largest_set, paths_of, search_below
from tuplewise.gpu_kernels.cpu.hitting_search import edge_bitmaps
from tuplewise.gpu_kernels.cpu.threads import run_tasks
from tuplewise.gpu_kernels.order_types import ASCENDING, CONSTANT, KEY
from tuplewise.gpu_kernels.words import COMPARISONS_PER_WORD, mask_words

Mask = NDArray[np.uint64]

STRIP_WORDS = 64  # words of bitmaps in a strip; where nothing is missed, all strips are read
MOST_NODES = 1 << 14  # nodes of a search between two looks at the clock, and at what was found
MOST_NODE_WORDS = 1 << 23  # of the contexts that so many nodes may find, one for each attribute


class _Grouped(NamedTuple):
    """Clues by difference set. Each portion is padded to whole blocks of 64 clues, and of 64 groups.

    Attributes
    ----------
    differ : uint64 (groups, words), the difference set of each group; of a portion, small ones first
    has : uint64 (attributes, group blocks), bitmaps over groups: whether an attribute differs
    starts : int64 (groups,), ascending, the first clue of each group
    ordered : uint64 (2, attributes, clue blocks), bitmaps over clues: whether an attribute is less, is greater
    present : uint64 (clue blocks,), bits that belong to a clue
    """

    differ: Mask
    has: NDArray[np.uint64]
    starts: NDArray[np.int64]
    ordered: NDArray[np.uint64]
    present: NDArray[np.uint64]


_GROUPED = "_Grouped(uint64[:, ::1], uint64[:, ::1], int64[::1], uint64[:, :, ::1], uint64[::1])"


@dataclass
class _Target:
    """Minimal contexts of one target, and the edges that they come from, uint64 (n, words) each."""

    contexts: Mask
    edges: Mask


class ContextSearch:
    """Search for minimal contexts: all targets, and all clues so far."""

    def __init__(
        self,
        attributes: int,
        kind: NDArray[np.int8],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        max_size: int | None,
        most: int | None,
    ) -> None:
        self._attributes = attributes
        self._words = mask_words(attributes)
        self._kind, self._left, self._right = kind, left, right
        nothing = np.zeros((0, self._words), dtype=np.uint64)
        self._targets = [_Target(np.zeros((1, self._words), dtype=np.uint64), nothing) for _ in range(len(kind))]
        no_blocks = np.zeros((2, attributes, 0), dtype=np.uint64)
        self._known = _Grouped(
            nothing, no_blocks[0], np.zeros(0, dtype=np.int64), no_blocks, np.zeros(0, dtype=np.uint64)
        )
        self._groups = nothing  # the search counts attributes
        self._largest = attributes if max_size is None else max_size
        self._most = np.iinfo(np.int64).max if most is None else most

    def extend(
        self, clues: NDArray[np.uint64], control: Control, tell: Callable[[int, float], None] | None
    ) -> tuple[Mask, NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_], int]:
        """Add clues: see `ExtendedContexts`."""
        known = self._with(clues)
        new_block = int(self._known.has.shape[1])
        before = [target.contexts for target in self._targets]
        found: list[tuple[Mask, Mask, NDArray[np.int64]] | None] = [None] * len(self._targets)
        told = np.array([sum(map(len, before)), self._most], dtype=np.int64)
        ready = np.full(len(before), -1, dtype=np.int64)  # contexts of each target that is done
        telling = threading.Lock()

        def task(number: int) -> None:
            if told[0] > told[1]:
                return
            target = self._targets[number]
            contexts, edges, kept, done = _extend(
                target.contexts, target.edges, int(self._kind[number]), int(self._left[number]),
                int(self._right[number]), known, new_block, self._groups, self._largest, stop, told,
            )  # fmt: skip
            found[number] = (contexts, edges, kept) if done else None
            ready[number] = len(contexts) if done else -1
            if tell is not None:
                with telling:
                    tell(int(ready[ready >= 0].sum()), float(np.mean(ready >= 0)))

        with control.alarm() as stop:
            run_tasks([1.0] * len(self._targets), lambda: task, control)
        done = np.array([one is not None for one in found])
        offsets = np.cumsum([0, *map(len, before)]).tolist()
        numbers = []
        for number, one in enumerate(found):
            if one is None:
                numbers.append(np.arange(offsets[number], offsets[number + 1]))
                continue
            contexts, edges, kept = one
            numbers.append(np.where(kept < 0, kept, kept + offsets[number]))
            self._targets[number] = _Target(contexts, edges)
        self._known = known
        sizes = [len(target.contexts) for target in self._targets]
        return (
            np.concatenate([target.contexts for target in self._targets]),
            np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            np.concatenate(numbers),
            done,
            int(told[0]),
        )

    def violated(self, clues: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which contexts, of all targets, one of these clues refutes: bool (N,)."""
        first = int(self._known.has.shape[1])
        known = self._with(clues)
        result = [np.zeros(0, dtype=np.bool_)]
        for number, target in enumerate(self._targets):
            attributes = int(self._left[number]), int(self._right[number])
            speaking = _speaking(int(self._kind[number]), *attributes, known, first)
            paths, lengths = paths_of(target.contexts, self._attributes)
            result.append(_first_missed(paths, lengths, known.has, speaking, first) >= 0)
        return np.concatenate(result)

    def _with(self, clues: NDArray[np.uint64]) -> _Grouped:
        """The clues so far with a portion of new ones."""
        masks, kept = _read_clues(clues, self._attributes, self._words)
        masks = np.compress(kept, masks, axis=1)
        sizes = np.bitwise_count(masks[0]).sum(axis=1, dtype=np.int64)
        masks = np.take(masks, np.lexsort((*masks[0].T, sizes)), axis=1)
        differ, count = masks[0], masks.shape[1]
        new_group = np.ones(count, dtype=np.bool_)
        new_group[1:] = np.any(differ[1:] != differ[:-1], axis=1)
        starts = np.flatnonzero(new_group)
        groups, before = -(-len(starts) // 64), len(self._known.present)
        padded = np.zeros((64 * groups, self._words), dtype=np.uint64)
        padded[: len(starts)] = differ[starts]
        padded_starts = np.full(64 * groups, 64 * before + count, dtype=np.int64)
        padded_starts[: len(starts)] = 64 * before + starts
        blocks = -(-count // 64)
        present = np.full(blocks, np.iinfo(np.uint64).max, dtype=np.uint64)
        if count % 64:
            present[-1] = np.uint64((1 << (count % 64)) - 1)
        ordered = np.stack([edge_bitmaps(side, self._attributes)[:, :blocks] for side in masks[1:]])
        new = _Grouped(padded, edge_bitmaps(padded, self._attributes)[:, :groups], padded_starts, ordered, present)
        axes = (0, 1, 0, 2, 0)
        return _Grouped(*(np.concatenate(both, axis=axis) for *both, axis in zip(self._known, new, axes, strict=True)))


@helper
def _even_bits(x):
    """Pack bits 0, 2, 4, ... of a word into its lower half."""
    x &= np.uint64(0x5555555555555555)
    x = (x | (x >> np.uint64(1))) & np.uint64(0x3333333333333333)
    x = (x | (x >> np.uint64(2))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    x = (x | (x >> np.uint64(4))) & np.uint64(0x00FF00FF00FF00FF)
    x = (x | (x >> np.uint64(8))) & np.uint64(0x0000FFFF0000FFFF)
    return (x | (x >> np.uint64(16))) & np.uint64(0x00000000FFFFFFFF)


@kernel("uint64[:, ::1], int64, int64")
def _read_clues(clues, attributes, words):
    """Attributes that differ, are less, are greater: uint64 (3, clues, words); and which clues to keep. Of a clue and
    its mirror, the one is kept whose first attribute that is less or greater is less.
    """
    masks = np.zeros((3, len(clues), words), dtype=np.uint64)
    kept = np.ones(len(clues), dtype=np.bool_)
    for i in range(len(clues)):
        ordered = False
        for w in range(-(-attributes // COMPARISONS_PER_WORD)):
            here = min(COMPARISONS_PER_WORD, attributes - COMPARISONS_PER_WORD * w)
            used = (np.uint64(1) << np.uint64(here)) - np.uint64(1)
            low = _even_bits(clues[i, w])
            high = _even_bits(clues[i, w] >> np.uint64(1))
            less, greater = ~high & ~low & used, high & ~low & used
            shift = np.uint64(COMPARISONS_PER_WORD * (w % 2))
            masks[0, i, w // 2] |= (~(~high & low) & used) << shift
            masks[1, i, w // 2] |= less << shift
            masks[2, i, w // 2] |= greater << shift
            first = (less | greater) & (~(less | greater) + np.uint64(1))
            if not ordered and first:
                ordered = True
                kept[i] = (first & less) != 0
    return masks, kept


@helper
def _violating(kind, left, right, known, block):
    """Bitmap of the clues of a block that violate a target."""
    ordered = known.ordered
    if kind == KEY:
        return known.present[block]
    if kind == CONSTANT:
        return ordered[0, left, block] | ordered[1, left, block]
    other = 1 if kind == ASCENDING else 0
    return (ordered[0, left, block] & ordered[other, right, block]) | (
        ordered[1, left, block] & ordered[1 - other, right, block]
    )


@kernel(f"int64, int64, int64, {_GROUPED}, int64")
def _speaking(kind, left, right, known, first):
    """Bitmap of the groups, from block `first` on, with a clue that violates a target: uint64 (blocks,).

    One such clue is enough: the rest of its group is passed over.
    """
    starts, blocks = known.starts, len(known.present)
    found = np.zeros(known.has.shape[1] - first, dtype=np.uint64)
    if len(found) == 0:
        return found
    group = 64 * first
    clue = starts[group]  # those before it were looked at
    while clue < 64 * blocks:
        block = clue // 64
        word = _violating(kind, left, right, known, block) >> np.uint64(clue % 64)
        if word == 0:
            clue = 64 * block + 64
            continue
        clue += lowest_bit(word)
        while group + 1 < len(starts) and starts[group + 1] <= clue:
            group += 1
        found[group // 64 - first] |= np.uint64(1) << np.uint64(group % 64)
        clue = starts[group + 1] if group + 1 < len(starts) else 64 * blocks
    return found


@kernel("int16[:, ::1], int64[::1], uint64[:, ::1], uint64[::1], int64")
def _first_missed(paths, lengths, has, speaking, first):
    """First group of `speaking` that agrees on each context, int64 (contexts,), -1 where there is none.

    `speaking`: bitmap of the groups that violate the target, from block `first` on.
    """
    missed = np.full(len(paths), -1, dtype=np.int64)
    left = np.empty((paths.shape[1] + 1, STRIP_WORDS), dtype=np.uint64)
    current = np.empty(paths.shape[1], dtype=np.int16)
    for start in range(0, len(speaking), STRIP_WORDS):
        size = min(STRIP_WORDS, len(speaking) - start)
        copy(speaking[start : start + size], left[0])
        depth = 0
        for i in range(len(paths)):
            if missed[i] >= 0:
                continue
            shared = 0
            while shared < min(depth, lengths[i]) and paths[i, shared] == current[shared]:
                shared += 1
            depth = shared
            while depth < lengths[i]:
                vertex = paths[i, depth]
                for b in range(size):
                    left[depth + 1, b] = left[depth, b] & ~has[vertex, first + start + b]
                current[depth] = vertex
                depth += 1
            some = np.uint64(0)
            for b in range(size):
                some |= left[depth, b]
            if some:
                for b in range(size):
                    if left[depth, b]:
                        missed[i] = 64 * (first + start + b) + lowest_bit(left[depth, b])
                        break
    return missed


@helper
def _distinct(missed):
    """Distinct groups among the first missed ones, ascending."""
    clues = np.empty(len(missed), dtype=np.int64)
    count = 0
    for i in range(len(missed)):
        if missed[i] >= 0:
            clues[count] = missed[i]
            count += 1
    sort(clues[:count])
    different = 0
    for i in range(count):
        if different == 0 or clues[i] != clues[different - 1]:
            clues[different] = clues[i]
            different += 1
    return clues[:different]


@helper
def _parted(rows, marked):
    """Split rows into the marked ones and the others."""
    yes, no = np.empty_like(rows), np.empty_like(rows)
    count = 0
    for i in range(len(rows)):
        if marked[i]:
            copy(rows[i], yes[count])
            count += 1
        else:
            copy(rows[i], no[i - count])
    return yes[:count], no[: len(rows) - count]


@kernel(
    f"uint64[:, ::1], uint64[:, ::1], int64, int64, int64, {_GROUPED}, int64, uint64[:, ::1], int64, boolean[::1], "
    "int64[::1]"
)
def _extend(contexts, edges, kind, left, right, known, new_block, groups, most, stop, told):
    """Extend one target: (contexts, edges, number of each among the given contexts or -1, whether it was completed)."""
    attributes, words = known.has.shape[0], contexts.shape[1]
    few_nodes = MOST_NODE_WORDS // (attributes * words + 1) + 1
    kept = np.arange(len(contexts))
    target = np.zeros(words, dtype=np.uint64)
    for a in (left, right):
        if a >= 0:
            target[a // 64] |= np.uint64(1) << np.uint64(a % 64)
    first = new_block
    speaking = _speaking(kind, left, right, known, first)
    if not speaking.any():
        return contexts, edges, kept, True
    settled = 0  # contexts before this one miss no group; the others are tested from block `first` on
    while settled < len(contexts):
        if stop[0]:
            return contexts, edges, kept, False
        paths, lengths = paths_of(contexts[settled:], largest_set(contexts[settled:]))
        missed = _first_missed(paths, lengths, known.has, speaking, first)
        missing = _distinct(missed)
        if len(missing) == 0:
            break
        new_edges = np.empty((len(missing), words), dtype=np.uint64)
        for i in range(len(missing)):
            some = np.uint64(0)
            for w in range(words):
                new_edges[i, w] = known.differ[missing[i], w] & ~target[w]
                some |= new_edges[i, w]
            if not some:  # two rows that agree on everything else violate the target: no context helps
                return contexts[:0], edges[:0], kept[:0], True
        old = len(edges)
        edges = joined(edges, new_edges)
        starts = np.zeros(len(contexts), dtype=np.bool_)
        for i in range(len(missed)):
            starts[settled + i] = missed[i] >= 0
        begin, stay = _parted(contexts, starts)
        nodes = MOST_NODES if attributes * words * MOST_NODES <= MOST_NODE_WORDS else few_nodes
        added, done = search_below(
            begin, edges, edge_bitmaps(edges, attributes), old, groups, False, most, nodes, stop, told
        )
        if not done:
            return contexts, edges, kept, False
        settled = 0
        new_kept = np.empty(len(stay) + len(added), dtype=np.int64)
        for i in range(len(starts)):
            if not starts[i]:
                new_kept[settled] = kept[i]
                settled += 1
        new_kept[settled:] = -1
        contexts, kept = joined(stay, added), new_kept
        if first > 0:
            first = 0
            speaking = _speaking(kind, left, right, known, first)
    return contexts, edges, kept, True
