"""Increments for PySpark: the rows as a DataFrame, and files that Spark writes and the driver commits.

Spark reads only the files that can hold rows of the increment. For the rows of a transform it writes Parquet files into
a folder of their own inside the output, which no reader sees before the driver has committed them.
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Field, Schema
from deltalake.transaction import AddAction, RemoveAction

from pipelines.increments.file_actions import add_action
from pipelines.increments.rows import SpanRows
from pipelines.increments.source_columns import spans_condition
from pipelines.layout.layout import types_with_order
from resources.errors import OutputRefused
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.lake import filesystem, list_folder

if TYPE_CHECKING:  # Spark is imported by those who have a session
    from pyspark.sql import DataFrame, SparkSession

_NULLABLE = {"nullable", "containsNull", "valueContainsNull"}


def spark_frame(rows: SpanRows, session: "SparkSession", columns: Sequence[str] | None = None) -> "DataFrame":
    """The rows as a DataFrame, with the columns of SOURCE_COLUMNS."""
    from pyspark.sql import functions as sf  # noqa: PLC0415 - see TYPE_CHECKING
    from pyspark.sql.types import StructType  # noqa: PLC0415

    names = list(columns) if columns is not None else rows.table_schema.names
    schema = StructType.fromJson({"type": "struct", "fields": rows.opened.fields()})
    place = {name: f"`{rows.layout.name(name)}`" for name in ("broker", "partition", "offset")}
    place["loaded_at_us"] = f"unix_micros(`{rows.layout.name('loaded_at')}`)"
    files = rows.files()
    if files:
        paths = [f"{_hadoop_path(rows.opened.uri)}/{file.path}" for file in files]
        frame = _read(session, schema, _hadoop_path(rows.opened.uri), paths)
        frame = frame.where(spans_condition(rows.spans, place))
    else:
        frame = session.createDataFrame([], schema)
    return frame.select(
        *(frame[_quoted(name)] for name in names),
        sf.lit(rows.source).alias("_source"),
        *(sf.expr(value).alias(f"_source_{name}") for name, value in place.items()),
    )


def _read(session: "SparkSession", schema: Any, root: str, paths: Sequence[str]) -> "DataFrame":
    # Above 32 paths Spark starts a job with a task for each path, only to list it.
    with _option(session, "spark.sql.sources.parallelPartitionDiscovery.threshold", "1000000"):
        return session.read.schema(schema).option("basePath", root).parquet(*map(_without_glob, paths))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _without_glob(path: str) -> str:
    """The path with the characters escaped that Hadoop would take for a pattern."""
    return "".join(f"\\{character}" if character in "{}[]*?\\" else character for character in path)


def _hadoop_path(uri: str) -> str:
    """The URI of a table for Spark, whose working directory may be another one."""
    folder = durable.local_path(uri)
    return uri.rstrip("/") if folder is None else f"file:{folder.absolute()}"


@contextmanager
def _option(session: "SparkSession", name: str, value: str) -> Iterator[None]:
    """Set an option of the session for a while."""
    before = session.conf.get(name, None)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.unset(name) if before is None else session.conf.set(name, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFiles:
    """The files that Spark writes for a DataFrame into an output."""

    frame: Any
    uri: str
    options: Mapping[str, str]

    def schema(self) -> Schema:
        """The columns of the DataFrame, in Delta's words; all may be null."""
        return _delta_schema(self._fields())

    def _fields(self) -> list[dict[str, Any]]:
        return [_nullable(field) for field in self.frame.schema.jsonValue()["fields"]]

    def missing_columns(self, handle: DeltaTable) -> list[Field]:
        """The columns that the table lacks.

        Raises:
            OutputRefused: a column has another type than in the table.
        """
        stored = {field["name"]: _nullable(field) for field in json.loads(handle.schema().to_json())["fields"]}
        fields = self._fields()
        for field in fields:
            name = field["name"]
            if name in stored and stored[name]["type"] != field["type"]:
                raise OutputRefused(
                    f"the column {name} has the type {field['type']}, but {stored[name]['type']} in the output "
                    f"{self.uri}; cast it in the transform"
                )
        return list(_delta_schema([field for field in fields if field["name"] not in stored]).fields)

    def write(self, partition_by: Sequence[str]) -> list[AddAction | RemoveAction]:
        """Let Spark write the files, and describe them. No version of the table names them yet."""
        folder = _new_folder()
        self._write(folder, partition_by)
        columns = (field for field in pa.schema(self.schema().to_arrow()) if field.name not in partition_by)
        store, types = filesystem(self.uri, self.options), types_with_order(columns)
        actions: list[AddAction | RemoveAction] = []
        for info in list_folder(store, folder, recursive=True):
            if info.path.endswith(".parquet"):
                with store.open_input_file(info.path) as file:
                    footer = pq.read_metadata(file)
                if footer.num_rows:
                    durable.sync_file(self.uri, info.path)
                    actions.append(add_action(info.path, info.size, footer, types))
                    failpoint("increment file described")
        failpoint("increment files written")
        return actions

    @contextmanager
    def staged(self) -> Iterator[pa.RecordBatchReader]:
        """Let Spark write the rows into files that no version will name, and read them back in batches."""
        import pyarrow.dataset as pads  # noqa: PLC0415 - it imports pandas

        folder, store = _new_folder(), filesystem(self.uri, self.options)
        try:
            self._write(folder, ())
            failpoint("increment files written")
            paths = [info.path for info in list_folder(store, folder) if info.path.endswith(".parquet")]
            yield pads.dataset(paths, filesystem=store, format="parquet").scanner(batch_readahead=2).to_reader()
        finally:
            with suppress(OSError):
                store.delete_dir(folder)

    def _write(self, folder: str, partition_by: Sequence[str]) -> None:
        # Spark's own type for times has no statistics, and readers of Delta do not expect it.
        with _option(self.frame.sparkSession, "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"):
            self.frame.write.partitionBy(*partition_by).parquet(f"{_hadoop_path(self.uri)}/{folder}")


def _new_folder() -> str:
    """A folder for the files of one increment. Delta's vacuum passes over names that begin with an underscore."""
    return f"increment-{uuid.uuid4().hex}"


def _nullable(description: Any) -> Any:
    """The description of a column in Delta's and Spark's JSON, in which everything may be null, without comments."""
    if isinstance(description, list):
        return [_nullable(item) for item in description]
    if not isinstance(description, dict):
        return description
    parts = {key: {} if key == "metadata" else _nullable(value) for key, value in description.items()}
    return {**parts, **dict.fromkeys(_NULLABLE & description.keys(), True)}


def _delta_schema(fields: Sequence[Mapping[str, Any]]) -> Schema:
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
