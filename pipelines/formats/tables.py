"""Opens the table of a topic in a lake, in the format that it has."""

from collections.abc import Mapping

from deltalake import DeltaTable

from kafka_io.errors import Where
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.delta.open_version import DeltaVersion
from pipelines.layout.layout import RAW, TableLayout
from pipelines.table.lake_table import LakeTable
from pipelines.table.open_table import OpenTable
from resources.errors import TableMissing
from resources.stores.lake import Lake
from resources.stores.store_options import store_options
from resources.stores.table_catalog import table_identifier


def lake_table(lake: Lake, cluster: str, topic: str, new_layout: TableLayout = RAW) -> LakeTable:
    """The table of a topic. Nothing is opened yet. If the table is created, it gets the new layout.

    Raises:
        ExtraMissing: it is an Iceberg table, and the packages for these are not installed.
    """
    if lake.formats.of(cluster, topic) == "iceberg":
        return _iceberg_table(lake, cluster, topic, new_layout)
    return DeltaLakeTable.of(lake, cluster, topic, new_layout)


def _iceberg_table(lake: Lake, cluster: str, topic: str, new_layout: TableLayout) -> LakeTable:
    catalog = lake.open_catalog()  # says so if pyiceberg is not installed
    from pipelines.iceberg.iceberg_table import IcebergLakeTable  # noqa: PLC0415 - only Iceberg tables need pyiceberg

    return IcebergLakeTable(
        lake=lake,
        uri=lake.table_uri(cluster, topic),
        where=Where(cluster=cluster, topic=topic),
        new_layout=new_layout,
        catalog=catalog,
        identifier=table_identifier(cluster, topic),
    )


def open_version(lake: Lake, uri: str, version: int | None = None) -> OpenTable:
    """A version of any table, by default its newest one. It need not be the table of a topic.

    Raises:
        LoadError, DeltaError, OSError: there is no such table, or the store does not answer.
    """
    place = lake.iceberg_place(uri)
    if place is None:
        return DeltaVersion.of_handle(DeltaTable(uri, version=version, storage_options=store_options(lake.options)))
    table = lake_table(lake, *place)
    opened = table.open_newest() if version is None else table.opened_at(version)
    if opened is None:
        raise TableMissing(f"there is no table {uri}", table.where)
    return opened


def native_table(lake: Lake, uri: str) -> object:
    """A table as the library of its format opens it, for the code of users. Raises as `open_version`."""
    place = lake.iceberg_place(uri)
    if place is None:
        return DeltaTable(uri, storage_options=store_options(lake.options))
    return lake.open_catalog().load_table(table_identifier(*place))


def table_at(table: LakeTable | str, options: Mapping[str, str] | None = None) -> LakeTable:
    """The table of a topic. A text is its URI, and `options` are those of its store."""
    if not isinstance(table, str):
        return table
    uri = table.rstrip("/")
    where = Where(topic=uri.rpartition("/")[2])
    return DeltaLakeTable(lake=Lake.of_table(uri, options or {}), uri=uri, where=where)
