"""Metadata of loads, observations, proofs and replays for the Dagster UI. Numbers are numeric, so the UI plots them."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.replay_result import TopicReplay
from pipelines.status.status import TopicStatus, now_ms
from pipelines.verify.verify import Proof
from resources.printed import printed
from resources.progress import Progress

Metadata = dict[str, Any]
"""Values that Dagster takes as metadata. It turns numbers and texts into its own types."""

_MAX_RECORDS = 500  # a longer table makes the page slow; the table's own ledger has all of them
_HOUR_S = 3600
_COLUMN_TYPES = {
    **dict.fromkeys(("topic", "gaps", "problem", "state", "source"), "string"),
    **dict.fromkeys(("seconds", "late_seconds", "hours_until_lost"), "float"),
}


def load_metadata(
    load: TopicLoad,
    *,
    late_before_s: float | None = None,
    after: TopicStatus | None = None,
    spark_page: str | None = None,
) -> Metadata:
    """The metadata of a load: the table of partitions first, then the numbers.

    Args:
        load: the result of the load.
        late_before_s: how long the oldest record without a row had waited when the run began, in seconds, if known.
        after: the topic's status after the load, if known.
        spark_page: the address of Spark's UI, if Spark was used.
    """
    fields, now = printed(load), now_ms()
    columns = "broker partition start end rows lag_before lag seconds source gaps"
    return _known(
        partitions=_table(fields["partitions"], columns),
        tables=_table([printed(own) for own in load.of_tables], "topic version rows files") if load.tables else None,
        **_numbers(load),
        **{name: fields[name] for name in ("bytes", "rows_per_second", "seconds", "lag_before", "lag", "topic")},
        lag_seconds_before=_rounded(late_before_s, digits=1),
        lag_seconds=_rounded(after.late_s(now), digits=1) if after else None,
        hours_until_lost=_rounded(after.left_s(now), _HOUR_S) if after else None,
        slowest_slice=str(load.slowest) if load.slowest else None,
        spark_ui=dg.MetadataValue.url(spark_page) if spark_page else None,
        error=load.error,
        **_table_after(load),
    )


def table_metadata(load: TopicLoad) -> Metadata:
    """The metadata of what a load did to one of the other tables of its topic."""
    fields = printed(load)
    return _known(
        partitions=_table(fields["partitions"], "broker partition start end rows gaps"),
        **_numbers(load),
        topic=load.topic,
        **_table_after(load),
    )


def _numbers(load: TopicLoad) -> Metadata:
    """The numbers of rows that a load added to a table, and of those that it left out."""
    return {
        **{name: getattr(load, name) for name in ("rows", "files", "bad_records")},
        "gaps": sum(sum(partition.gaps.values()) for partition in load.partitions),
        "skipped": load.skipped or None,
        "skipped_share": round(load.skipped / (load.rows + load.skipped), 4) if load.skipped else None,
    }


def _table_after(load: TopicLoad) -> Metadata:
    """The table after a load, and what a person should know of it."""
    return {
        "table": dg.MetadataValue.path(load.table) if load.table else None,
        "table_version": load.version,
        "warnings": "\n".join(load.warnings) or None,
    }


def status_metadata(status: TopicStatus, now: int) -> Metadata:
    """The status of a topic at a time (ms since 1970)."""
    return _known(
        state=status.state(now).value,  # Dagster does not accept our enums
        lag=status.lag,
        lag_seconds=_rounded(status.late_s(now), digits=1),
        hours_until_lost=_rounded(status.left_s(now), _HOUR_S),
        bad_records=status.bad_records,
        table_version=status.version,
    )


def _rounded(seconds: float | None, unit_s: int = 1, *, digits: int = 2) -> float | None:
    return None if seconds is None else round(seconds / unit_s, digits)


def proof_metadata(proof: Proof) -> Metadata:
    """The metadata of a verified table: the numbers of each partition, the totals, and the problems."""
    records = printed(proof.partitions)
    return _known(
        partitions=_table(records, "broker partition start end rows missing duplicates gaps"),
        **{name: sum(record[name] for record in records) for name in ("rows", "missing", "duplicates")},
        problems="\n".join(proof.problems) or None,
    )


def replay_metadata(replay: TopicReplay) -> Metadata:
    """The metadata of a replay: what was fetched again per partition, and how it compares with the table's rows."""
    fields = printed(replay)
    columns = "broker partition start end rows equal differing only_in_table only_on_broker copies gaps"
    return _known(
        partitions=_table(fields["partitions"], columns),
        **{name: fields[name] for name in ("rows", "changed", "seconds", "topic")},
        table=dg.MetadataValue.path(replay.table),
        table_version=replay.version,
    )


def log_progress(log: dg.DagsterLogManager, key: str) -> Progress:
    """A function that logs the progress of a load: at most one line per 5 %, with the estimated time left."""
    logged_parts, began = 0, time.monotonic()

    def log_line(fetched: int, total: int) -> None:
        nonlocal logged_parts
        parts = 20 * fetched // max(1, total)
        if parts > logged_parts and fetched < total:  # the result of the load follows in a line of its own
            logged_parts = parts
            left_s = (time.monotonic() - began) * (total - fetched) / fetched
            log.info("%s: %d of %d offsets fetched, about %.0f s left", key, fetched, total, left_s)

    return log_line


def _known(**values: Any) -> Metadata:
    """The metadata whose value is known."""
    return {name: value for name, value in values.items() if value is not None}


def _table(records: Sequence[Mapping[str, Any]], columns: str) -> dg.MetadataValue:
    names = columns.split()
    schema = dg.TableSchema(columns=[dg.TableColumn(name, _COLUMN_TYPES.get(name, "int")) for name in names])
    rows = [dg.TableRecord({name: _cell(record[name]) for name in names}) for record in records[:_MAX_RECORDS]]
    return dg.MetadataValue.table(rows, schema)


def _cell(value: Any) -> Any:
    """A value of a record as Dagster's tables take it: gaps become text."""
    return ", ".join(f"{cause}: {count}" for cause, count in value.items()) if isinstance(value, Mapping) else value
