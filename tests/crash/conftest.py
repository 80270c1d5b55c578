"""The stage that all tests of this folder share. Each test has its own lake."""

from collections.abc import Iterator

import pytest

from tests.crash.stage import Stage


@pytest.fixture(scope="session")
def stage(zookeeper_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(zookeeper_server, tmp_path_factory.mktemp("stage")) as stage:
        yield stage
