"""What a load or a proof looks like in the Dagster UI. Numbers are numeric metadata, so that the UI plots them."""

import time
from collections.abc import Mapping, Sequence

import dagster as dg

from pipelines.loading.outcome import TopicLoad
from pipelines.loading.verify import Proof
from pipelines.mending.replayed import TopicReplay
from pipelines.watching.status import TopicStatus, now_ms
from resources.spark import Progress

_MOST_RECORDS = 500  # a longer table makes the page slow; the ledger has them all


def load_metadata(
    load: TopicLoad, *, late_before_s: float | None = None, after: TopicStatus | None = None
) -> dict[str, dg.MetadataValue]:
    """A load's metadata: the table of partitions first, then the numbers.

    Args:
        load: what the run did.
        late_before_s: how long its oldest record had waited when the run began, in seconds, if that is known.
        after: how the topic stands since, if that is known.
    """
    columns = ("broker", "partition", "start", "end", "rows", "lag_before", "lag", "seconds", "source")
    records = [{**{name: getattr(one, name) for name in columns}, "gaps": _gaps(one.gaps)} for one in load.partitions]
    found: dict[str, dg.MetadataValue] = {
        "partitions": _table(records, (*columns, "gaps")),
        "rows": dg.MetadataValue.int(load.rows),
        "bytes": dg.MetadataValue.int(load.bytes),
        "files": dg.MetadataValue.int(load.files),
        "gaps": dg.MetadataValue.int(sum(sum(one.gaps.values()) for one in load.partitions)),
        "rows_per_second": dg.MetadataValue.float(round(load.rows_per_second, 1)),
        "seconds": dg.MetadataValue.float(load.seconds),
        "lag_before": dg.MetadataValue.int(load.lag_before),
        "lag": dg.MetadataValue.int(load.lag),
        "topic": dg.MetadataValue.text(load.topic),
    }
    now = now_ms()
    if late_before_s is not None:
        found["lag_seconds_before"] = dg.MetadataValue.float(round(late_before_s, 1))
    if after and (late_s := after.late_s(now)) is not None:
        found["lag_seconds"] = dg.MetadataValue.float(round(late_s, 1))
    if after and (left_s := after.left_s(now)) is not None:
        found["hours_until_lost"] = dg.MetadataValue.float(round(left_s / 3600, 2))
    if load.slowest:
        found["slowest_slice"] = dg.MetadataValue.text(str(load.slowest))
    if load.table:
        found["table"] = dg.MetadataValue.path(load.table)
    if load.version is not None:
        found["table_version"] = dg.MetadataValue.int(load.version)
    if load.error:
        found["error"] = dg.MetadataValue.text(load.error)
    if load.warnings:
        found["warnings"] = dg.MetadataValue.text("\n".join(load.warnings))
    return found


def observation_metadata(found: Sequence[TopicStatus]) -> dict[str, dg.MetadataValue]:
    """What was seen of the topics of a group: totals to plot, and a line per topic."""
    return status_metadata(found, now_ms(), {one.topic: one.error for one in found if one.error})


def status_metadata(found: Sequence[TopicStatus], now: int, problems: Mapping[str, str]) -> dict[str, dg.MetadataValue]:
    """How topics stand at a time, and what is wrong with some of them."""
    late = [seconds for one in found if (seconds := one.late_s(now)) is not None]
    left = [seconds for one in found if (seconds := one.left_s(now)) is not None]
    records: list[dict[str, object]] = [
        {
            "topic": one.topic,
            "state": one.state(now).value,  # Dagster takes no enums of others
            "lag": one.lag,
            "late_seconds": _rounded(one.late_s(now)),
            "hours_until_lost": _rounded(one.left_s(now), 3600),
            "problem": problems.get(one.topic, ""),
        }
        for one in found
    ]
    told = {
        "topics": _table(records, ("topic", "state", "lag", "late_seconds", "hours_until_lost", "problem")),
        "count": dg.MetadataValue.int(len(found)),
        "lag": dg.MetadataValue.int(sum(one.lag or 0 for one in found)),
        "problems": dg.MetadataValue.int(len(problems)),
        "most_late_seconds": dg.MetadataValue.float(round(max(late, default=0.0), 1)),
    }
    if left:
        told["hours_until_first_loss"] = dg.MetadataValue.float(round(min(left) / 3600, 2))
    return told


def _rounded(seconds: float | None, unit: int = 1) -> float | None:
    return None if seconds is None else round(seconds / unit, 2)


def proof_metadata(proofs: Sequence[Proof]) -> dict[str, dg.MetadataValue]:
    """What was proven, partition by partition, and the problems."""
    columns = ("broker", "partition", "start", "end", "rows", "missing", "duplicates")
    records = [
        {"topic": proof.topic, **{name: getattr(one, name) for name in columns}, "gaps": _gaps(one.gaps)}
        for proof in proofs
        for one in proof.partitions
    ]
    problems = [f"{proof.topic}: {problem}" for proof in proofs for problem in proof.problems]
    found: dict[str, dg.MetadataValue] = {
        "partitions": _table(records, ("topic", *columns, "gaps")),
        "rows": dg.MetadataValue.int(sum(one.rows for proof in proofs for one in proof.partitions)),
        "missing": dg.MetadataValue.int(sum(one.missing for proof in proofs for one in proof.partitions)),
        "duplicates": dg.MetadataValue.int(sum(one.duplicates for proof in proofs for one in proof.partitions)),
    }
    if problems:
        found["problems"] = dg.MetadataValue.text("\n".join(problems))
    return found


def replay_metadata(replay: TopicReplay) -> dict[str, dg.MetadataValue]:
    """A replay's metadata: what was fetched again of each partition, and how the table's rows were beside it."""
    kinds = ("equal", "differing", "only_in_table", "only_on_broker", "copies")
    columns = ("broker", "partition", "start", "end", "rows", *kinds)
    told = [one.as_dict() for one in replay.partitions]
    records = [{**{name: one[name] for name in columns}, "gaps": _gaps(one["gaps"])} for one in told]
    found: dict[str, dg.MetadataValue] = {
        "partitions": _table(records, (*columns, "gaps")),
        "rows": dg.MetadataValue.int(replay.rows),
        "changed": dg.MetadataValue.bool(replay.changed),
        "seconds": dg.MetadataValue.float(replay.seconds),
        "topic": dg.MetadataValue.text(replay.topic),
        "table": dg.MetadataValue.path(replay.table),
    }
    if replay.version is not None:
        found["table_version"] = dg.MetadataValue.int(replay.version)
    return found


def progress(log: dg.DagsterLogManager, key: str) -> Progress:
    """Lines in the run's log, at most one per twentieth of the work, with the time that is left at the same pace."""
    told, began = 0, time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        part = 20 * done // max(1, total)
        if part > told and done < total:  # the line after the last says what came of it
            told = part
            left = (time.monotonic() - began) * (total - done) / done
            log.info("%s: %d of %d offsets fetched, about %.0f s left", key, done, total, left)

    return tell


def _gaps(gaps: Mapping[str, int]) -> str:
    return ", ".join(f"{cause}: {count}" for cause, count in gaps.items())


def _table(records: Sequence[dict[str, object]], columns: Sequence[str]) -> dg.MetadataValue:
    texts = {"topic", "gaps", "problem", "state", "source"}
    types = dict.fromkeys(("seconds", "late_seconds", "hours_until_lost"), "float")
    schema = dg.TableSchema(
        columns=[dg.TableColumn(name, "string" if name in texts else types.get(name, "int")) for name in columns]
    )
    rows = [dg.TableRecord(record) for record in records[:_MOST_RECORDS]]  # type: ignore[arg-type]
    return dg.MetadataValue.table(rows, schema)
