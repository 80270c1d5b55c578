"""Opens the table of a topic in a lake, in the format that it has."""

from collections.abc import Mapping

from deltalake import DeltaTable

from kafka_io.errors import Where
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.delta.open_version import DeltaVersion
from pipelines.layout.layout import RAW, TableLayout
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable
from resources.stores.lake import Lake
from resources.stores.store_options import store_options


def lake_table(lake: Lake, cluster: str, topic: str, new_layout: TableLayout = RAW) -> LakeTable:
    """The table of a topic. Nothing is opened yet. If the table is created, it gets the new layout."""
    return DeltaLakeTable.of(lake, cluster, topic, new_layout)


def open_version(uri: str, options: Mapping[str, str], version: int | None = None) -> OpenTable:
    """A version of any table, by default its newest one. It need not be the table of a topic.

    Raises:
        DeltaError, OSError: there is no such table, or the store does not answer.
    """
    return DeltaVersion.of_handle(native_table(uri, options, version))


def native_table(uri: str, options: Mapping[str, str], version: int | None = None) -> DeltaTable:
    """A version of a table as the library of its format opens it, for the code of users. Raises as `open_version`."""
    return DeltaTable(uri, version=version, storage_options=store_options(options))


def table_at(table: LakeTable | str, options: Mapping[str, str] | None = None) -> LakeTable:
    """The table of a topic. A text is its URI, and `options` are those of its store."""
    if not isinstance(table, str):
        return table
    uri = table.rstrip("/")
    where = Where(topic=uri.rpartition("/")[2])
    return DeltaLakeTable(lake=Lake.of_table(uri, options or {}), uri=uri, where=where)
