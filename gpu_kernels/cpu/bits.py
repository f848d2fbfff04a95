"""Bits of words, and bit sets of several words."""

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import helper, inlined


@helper
def bits_in(word: np.uint64) -> int:
    """Number of set bits."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@helper
def lowest_bit(word: np.uint64) -> int:
    """Index of the lowest set bit of a word that isn't 0."""
    return bits_in((word & (~word + np.uint64(1))) - np.uint64(1))


@inlined
def set_bit(words, bit):
    """Add a bit to a set."""
    words[bit // 64] |= np.uint64(1) << np.uint64(bit % 64)


@inlined
def clear_bit(words, bit):
    """Remove a bit from a set."""
    words[bit // 64] &= ~(np.uint64(1) << np.uint64(bit % 64))
