"""Front door of the checks that need classes of equal rows: keys, constancy, order compatibility."""

from __future__ import annotations

KEY, CONSTANT, ASCENDING, DESCENDING = 0, 1, 2, 3
