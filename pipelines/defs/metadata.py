"""Metadata of loads, observations, proofs and replays for the Dagster UI. Numbers are numeric, so the UI plots them."""

import time
from collections.abc import Mapping, Sequence

import dagster as dg

from pipelines.loading.outcome import TopicLoad
from pipelines.loading.verify import Proof
from pipelines.maintenance.replay_result import TopicReplay
from pipelines.status.status import TopicStatus, now_ms
from resources.spark import Progress

_MAX_RECORDS = 500  # a longer table makes the page slow; the table's own ledger has all of them


def load_metadata(
    load: TopicLoad, *, late_before_s: float | None = None, after: TopicStatus | None = None
) -> dict[str, dg.MetadataValue]:
    """The metadata of a load: the table of partitions first, then the numbers.

    Args:
        load: the result of the load.
        late_before_s: how long the oldest record without a row had waited when the run began, in seconds, if known.
        after: the topic's status after the load, if known.
    """
    columns = ("broker", "partition", "start", "end", "rows", "lag_before", "lag", "seconds", "source")
    records = [
        {**_chosen(partition.as_dict(), columns), "gaps": _gaps(partition.gaps)} for partition in load.partitions
    ]
    metadata: dict[str, dg.MetadataValue] = {
        "partitions": _table(records, (*columns, "gaps")),
        "rows": dg.MetadataValue.int(load.rows),
        "bytes": dg.MetadataValue.int(load.bytes),
        "files": dg.MetadataValue.int(load.files),
        "gaps": dg.MetadataValue.int(sum(sum(partition.gaps.values()) for partition in load.partitions)),
        "rows_per_second": dg.MetadataValue.float(round(load.rows_per_second, 1)),
        "seconds": dg.MetadataValue.float(load.seconds),
        "lag_before": dg.MetadataValue.int(load.lag_before),
        "lag": dg.MetadataValue.int(load.lag),
        "topic": dg.MetadataValue.text(load.topic),
    }
    now = now_ms()
    if late_before_s is not None:
        metadata["lag_seconds_before"] = dg.MetadataValue.float(round(late_before_s, 1))
    if after and (late_s := after.late_s(now)) is not None:
        metadata["lag_seconds"] = dg.MetadataValue.float(round(late_s, 1))
    if after and (left_s := after.left_s(now)) is not None:
        metadata["hours_until_lost"] = dg.MetadataValue.float(round(left_s / 3600, 2))
    if load.slowest:
        metadata["slowest_slice"] = dg.MetadataValue.text(str(load.slowest))
    if load.table:
        metadata["table"] = dg.MetadataValue.path(load.table)
    if load.version is not None:
        metadata["table_version"] = dg.MetadataValue.int(load.version)
    if load.error:
        metadata["error"] = dg.MetadataValue.text(load.error)
    if load.warnings:
        metadata["warnings"] = dg.MetadataValue.text("\n".join(load.warnings))
    return metadata


def observation_metadata(statuses: Sequence[TopicStatus]) -> dict[str, dg.MetadataValue]:
    """The metadata of an observation of a group: totals to plot, and a line per topic."""
    return status_metadata(statuses, now_ms(), {status.topic: status.error for status in statuses if status.error})


def status_metadata(
    statuses: Sequence[TopicStatus], now: int, problems: Mapping[str, str]
) -> dict[str, dg.MetadataValue]:
    """The status of topics at a time (ms since 1970), with the problems of some of them by topic."""
    late = [seconds for status in statuses if (seconds := status.late_s(now)) is not None]
    left = [seconds for status in statuses if (seconds := status.left_s(now)) is not None]
    records: list[dict[str, object]] = [
        {
            "topic": status.topic,
            "state": status.state(now).value,  # Dagster does not accept our enums
            "lag": status.lag,
            "late_seconds": _rounded(status.late_s(now)),
            "hours_until_lost": _rounded(status.left_s(now), 3600),
            "problem": problems.get(status.topic, ""),
        }
        for status in statuses
    ]
    metadata = {
        "topics": _table(records, ("topic", "state", "lag", "late_seconds", "hours_until_lost", "problem")),
        "count": dg.MetadataValue.int(len(statuses)),
        "lag": dg.MetadataValue.int(sum(status.lag or 0 for status in statuses)),
        "problems": dg.MetadataValue.int(len(problems)),
        "most_late_seconds": dg.MetadataValue.float(round(max(late, default=0.0), 1)),
    }
    if left:
        metadata["hours_until_first_loss"] = dg.MetadataValue.float(round(min(left) / 3600, 2))
    return metadata


def _rounded(seconds: float | None, unit: int = 1) -> float | None:
    return None if seconds is None else round(seconds / unit, 2)


def proof_metadata(proofs: Sequence[Proof]) -> dict[str, dg.MetadataValue]:
    """The metadata of verified tables: the numbers of each partition, the totals, and the problems."""
    columns = ("broker", "partition", "start", "end", "rows", "missing", "duplicates")
    records = [
        {"topic": proof.topic, **_chosen(partition.as_dict(), columns), "gaps": _gaps(partition.gaps)}
        for proof in proofs
        for partition in proof.partitions
    ]
    problems = [f"{proof.topic}: {problem}" for proof in proofs for problem in proof.problems]
    metadata: dict[str, dg.MetadataValue] = {
        "partitions": _table(records, ("topic", *columns, "gaps")),
        "rows": dg.MetadataValue.int(_total(proofs, "rows")),
        "missing": dg.MetadataValue.int(_total(proofs, "missing")),
        "duplicates": dg.MetadataValue.int(_total(proofs, "duplicates")),
    }
    if problems:
        metadata["problems"] = dg.MetadataValue.text("\n".join(problems))
    return metadata


def _total(proofs: Sequence[Proof], count: str) -> int:
    return sum(getattr(partition, count) for proof in proofs for partition in proof.partitions)


def replay_metadata(replay: TopicReplay) -> dict[str, dg.MetadataValue]:
    """The metadata of a replay: what was fetched again per partition, and how it compares with the table's rows."""
    kinds = ("equal", "differing", "only_in_table", "only_on_broker", "copies")
    columns = ("broker", "partition", "start", "end", "rows", *kinds)
    partitions = [partition.as_dict() for partition in replay.partitions]
    records = [{**{name: fields[name] for name in columns}, "gaps": _gaps(fields["gaps"])} for fields in partitions]
    metadata: dict[str, dg.MetadataValue] = {
        "partitions": _table(records, (*columns, "gaps")),
        "rows": dg.MetadataValue.int(replay.rows),
        "changed": dg.MetadataValue.bool(replay.changed),
        "seconds": dg.MetadataValue.float(replay.seconds),
        "topic": dg.MetadataValue.text(replay.topic),
        "table": dg.MetadataValue.path(replay.table),
    }
    if replay.version is not None:
        metadata["table_version"] = dg.MetadataValue.int(replay.version)
    return metadata


def log_progress(log: dg.DagsterLogManager, key: str) -> Progress:
    """A function that logs the progress of a load: at most one line per 5 %, with the estimated time left."""
    logged_parts, began = 0, time.monotonic()

    def log_line(done: int, total: int) -> None:
        nonlocal logged_parts
        parts = 20 * done // max(1, total)
        if parts > logged_parts and done < total:  # the result of the load follows in a line of its own
            logged_parts = parts
            left_s = (time.monotonic() - began) * (total - done) / done
            log.info("%s: %d of %d offsets fetched, about %.0f s left", key, done, total, left_s)

    return log_line


def _chosen(fields: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    return {name: fields[name] for name in names}


def _gaps(gaps: Mapping[str, int]) -> str:
    return ", ".join(f"{cause}: {count}" for cause, count in gaps.items())


def _table(records: Sequence[dict[str, object]], columns: Sequence[str]) -> dg.MetadataValue:
    texts = {"topic", "gaps", "problem", "state", "source"}
    types = dict.fromkeys(("seconds", "late_seconds", "hours_until_lost"), "float")
    schema = dg.TableSchema(
        columns=[dg.TableColumn(name, "string" if name in texts else types.get(name, "int")) for name in columns]
    )
    rows = [dg.TableRecord(record) for record in records[:_MAX_RECORDS]]  # type: ignore[arg-type]
    return dg.MetadataValue.table(rows, schema)
