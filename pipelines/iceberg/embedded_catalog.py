"""The catalog of a lake without a server: a SQLite file in the root of the lake."""

from functools import cache
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

CATALOG_FILE = "_catalog.db"
"""The name of the file. Readers of tables ignore names that begin with an underscore."""


@cache
def embedded_catalog(root: Path) -> Catalog:
    """The catalog of the lake in this folder. It is created if it does not exist."""
    root.mkdir(parents=True, exist_ok=True)
    return SqlCatalog("penstock", uri=f"sqlite:///{root / CATALOG_FILE}", warehouse=root.absolute().as_uri())
