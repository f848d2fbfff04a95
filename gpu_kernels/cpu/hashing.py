"""The hash of sets of bits, for tables with open addressing."""

# mypy: disable-error-code="no-untyped-def, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import inlined


@inlined
def mix_word(mixed, word):
    """Multiply a word into what the words before it came to, and bring the high bits down."""
    product = (mixed ^ word) * np.uint64(0xBF58476D1CE4E5B9)
    return product ^ (product >> np.uint64(29))


@inlined
def hash_words(words):
    """A number of 64 bits for some words."""
    mixed = np.uint64(0)
    for w in range(len(words)):
        mixed = mix_word(mixed, words[w])
    return mixed


@inlined
def same_words(words, others):
    """Whether two sets of as many words are the same."""
    w = 0
    while w < len(words) and words[w] == others[w]:
        w += 1
    return w == len(words)
