"""What a load or a proof looks like in the Dagster UI. Numbers are numeric metadata, so that the UI plots them."""

import time
from collections.abc import Mapping, Sequence

import dagster as dg

from pipelines.loading.outcome import TopicLoad
from pipelines.loading.verify import Proof
from pipelines.mending.replayed import TopicReplay
from resources.spark import Progress

_MOST_RECORDS = 500  # a longer table makes the page slow; the ledger has them all


def metadata(load: TopicLoad) -> dict[str, dg.MetadataValue]:
    """A load's metadata: the table of partitions first, then the numbers."""
    rate = load.rows / load.seconds if load.seconds else 0.0
    columns = ("broker", "partition", "start", "end", "rows", "lag", "seconds")
    records = [{**{name: getattr(one, name) for name in columns}, "gaps": _gaps(one.gaps)} for one in load.partitions]
    found: dict[str, dg.MetadataValue] = {
        "partitions": _table(records, (*columns, "gaps")),
        "rows": dg.MetadataValue.int(load.rows),
        "bytes": dg.MetadataValue.int(load.bytes),
        "files": dg.MetadataValue.int(load.files),
        "rows_per_second": dg.MetadataValue.float(round(rate, 1)),
        "seconds": dg.MetadataValue.float(load.seconds),
        "lag": dg.MetadataValue.int(sum(one.lag for one in load.partitions)),
        "topic": dg.MetadataValue.text(load.topic),
    }
    if load.table:
        found["table"] = dg.MetadataValue.path(load.table)
    if load.version is not None:
        found["table_version"] = dg.MetadataValue.int(load.version)
    if load.error:
        found["error"] = dg.MetadataValue.text(load.error)
    if load.warnings:
        found["warnings"] = dg.MetadataValue.text("\n".join(load.warnings))
    return found


def check_metadata(proofs: Sequence[Proof]) -> dict[str, dg.MetadataValue]:
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
        if part > told:
            told = part
            left = (time.monotonic() - began) * (total - done) / done
            log.info("%s: %d of %d offsets fetched, about %.0f s left", key, done, total, left)

    return tell


def _gaps(gaps: Mapping[str, int]) -> str:
    return ", ".join(f"{cause}: {count}" for cause, count in gaps.items())


def _table(records: Sequence[dict[str, object]], columns: Sequence[str]) -> dg.MetadataValue:
    texts = {"topic", "gaps"}
    types = {"seconds": "float"}
    schema = dg.TableSchema(
        columns=[dg.TableColumn(name, "string" if name in texts else types.get(name, "int")) for name in columns]
    )
    rows = [dg.TableRecord(record) for record in records[:_MOST_RECORDS]]  # type: ignore[arg-type]
    return dg.MetadataValue.table(rows, schema)
