"""Front door of the pairwise evidence kernel: distinct clues of pairs of tuples, with counts."""

from __future__ import annotations
