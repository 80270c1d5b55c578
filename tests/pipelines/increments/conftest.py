"""Fixtures for tests that fill outputs. A test that takes `stored` runs with each kind, or with the kinds it names."""

from pathlib import Path

import pytest

from tests.pipelines.increments.stored_outputs import KINDS, StoredOutput


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of output."""
    return str(request.param)


@pytest.fixture
def stored(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> StoredOutput:
    """An output without a table."""
    place = request.getfixturevalue("postgres_dsn") if kind == "postgres" else str(tmp_path / "output")
    return StoredOutput(kind, place)
