"""The laws of commits hold for tables of each format."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.small_table import SmallIcebergTable, SmallTable

FORMATS: Mapping[str, type[SmallTable] | type[SmallIcebergTable]] = {"delta": SmallTable, "iceberg": SmallIcebergTable}


@pytest.fixture(params=FORMATS)
def small(request: pytest.FixtureRequest, tmp_path: Path) -> SmallTable | SmallIcebergTable:
    return FORMATS[request.param](tmp_path / "lake")
