"""The hash of sets of bits, for tables with open addressing."""

# mypy: disable-error-code="no-untyped-def, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import inlined


@inlined
def hash_words(words):
    """A number of 64 bits for some words: each is multiplied in, and its high bits brought down."""
    mixed = np.uint64(0)
    for w in range(len(words)):
        mixed = (mixed ^ words[w]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return mixed


@inlined
def same_words(words, others):
    """Whether two sets of as many words are the same."""
    w = 0
    while w < len(words) and words[w] == others[w]:
        w += 1
    return w == len(words)
