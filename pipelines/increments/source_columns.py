"""The columns that say from which row of the source a row of an output comes, and conditions on them.

`_source_loaded_at_us` is a number, because SQL dialects and time zones of sessions disagree about times.
"""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from pipelines.increments.difference import LoadedSpan

SOURCE_COLUMNS = pa.schema(
    [
        pa.field("_source", pa.string()),
        pa.field("_source_broker", pa.int32()),
        pa.field("_source_partition", pa.int32()),
        pa.field("_source_offset", pa.int64()),
        pa.field("_source_loaded_at_us", pa.int64()),
    ]
)
"""The source as `cluster/topic`, and the broker (only in Kafka 0.7), partition, offset and loading time of the row."""
_OUTPUT_NAMES = {name: f"_source_{name}" for name in ("broker", "partition", "offset", "loaded_at_us")}


def of_source_rows(source: str, spans: Iterable[LoadedSpan]) -> str:
    """The SQL condition for the rows of an output that come from these rows of the source.

    DataFusion, which deltalake uses, DuckDB and Postgres understand it.
    """
    name = source.replace("'", "''")
    return f"_source = '{name}' AND {spans_condition(spans, _OUTPUT_NAMES)}"


def spans_condition(spans: Iterable[LoadedSpan], names: Mapping[str, str]) -> str:
    """The SQL condition for the rows of these spans.

    Args:
        spans: at least one span.
        names: the SQL expressions for `broker`, `partition`, `offset` and `loaded_at_us`.
    """
    return _any_of([_condition(span, names) for span in spans])


def _condition(span: LoadedSpan, names: Mapping[str, str]) -> str:
    partition, start, stop = span.offsets.partition, span.offsets.start, span.offsets.stop
    of_broker = "" if partition.broker is None else f"{names['broker']} = {partition.broker} AND "
    offset = names["offset"]
    times = ", ".join(map(str, span.loaded_at_us))
    return (
        f"({of_broker}{names['partition']} = {partition.partition} AND {offset} >= {start} AND {offset} < {stop} "
        f"AND {names['loaded_at_us']} IN ({times}))"
    )


def _any_of(conditions: Sequence[str]) -> str:
    """The conditions joined by OR as a balanced tree.

    SQL engines walk conditions recursively, and a chain of thousands exhausts their stack.
    """
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return f"({_any_of(conditions[:middle])} OR {_any_of(conditions[middle:])})"
