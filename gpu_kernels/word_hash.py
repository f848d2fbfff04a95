"""Hash of 64-bit words: NumPy arrays use this module, compiled loops `cpu.hashing`."""

from __future__ import annotations

from typing import Any

import numpy as np

SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: multiples of it are spread evenly over all numbers, by their high bits."""
_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


def mix_word(mixed: Any, word: Any) -> Any:
    """Add one word to a hash, uint64: multiply the word in, then fold the high bits into the low ones.

    Source of the constants: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    mixed = (mixed ^ word) * _MULTIPLIER
    return mixed ^ (mixed >> _SHIFT)
