"""The laws of commits hold for tables of each format."""

from pathlib import Path

import pytest

from tests.small_table import FORMATS, SmallIcebergTable, SmallTable


@pytest.fixture(params=FORMATS)
def small(request: pytest.FixtureRequest, tmp_path: Path) -> SmallTable | SmallIcebergTable:
    return FORMATS[request.param](tmp_path / "lake")
