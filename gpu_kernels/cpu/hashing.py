"""Hash of words, for tables with open addressing."""

# mypy: disable-error-code="no-untyped-def, no-any-return"

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels import word_hash
from tuplewise.gpu_kernels.compiled import inlined

mix_word = inlined(word_hash.mix_word)


@inlined
def hash_words(words):
    """Hash of some words, 64 bits."""
    mixed = np.uint64(0)
    for w in range(len(words)):
        mixed = mix_word(mixed, words[w])
    return mixed


@inlined
def same_words(words, others):
    """Tell whether two rows of as many words are equal."""
    w = 0
    while w < len(words) and words[w] == others[w]:
        w += 1
    return w == len(words)
