"""One cluster on loopback for all tests that need one, and their tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster_tables import Twice, make_days, make_places, make_shop
from loopback import Cluster, belonging_to, loopback_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with loopback_cluster(folder) as started:
        yield started
    assert belonging_to(folder) == []


@pytest.fixture(scope="session")
def places_twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    return make_places(tmp_path_factory.mktemp("places") / "table.parquet")


@pytest.fixture(scope="session")
def days_twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    return make_days(tmp_path_factory.mktemp("days") / "table.parquet")


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Twice]:
    return make_shop(tmp_path_factory.mktemp("shop"))
