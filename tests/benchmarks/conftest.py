"""What tests of benchmarks share: quick collections of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Iterator[None]:
    """Each measurement collects garbage first: all that other tests have left in this process is kept out of that."""
    gc.freeze()
    yield
    gc.unfreeze()
