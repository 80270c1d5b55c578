"""Increments of tables that real loads, replays and redecodes have filled, also typed ones."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment
from pipelines.ledger.ledger import LedgerEntry
from pipelines.load.load import Loader
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import ReplayRequest
from resources.kafka import open_cluster, open_schema_registry
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of, no_spark

pytestmark = pytest.mark.slow  # each test fills a table and changes it

STRICT = {"format": "json", "columns": {"id": "long"}, "max_bad_share": 1}
LENIENT = {"format": "json", "columns": {"id": "string"}, "max_bad_share": 1}


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    logs = {0: log_of([b'{"id": 0}', b'{"id": "1"}', b'{"id": 2}']), 1: log_of([b'{"id": 5}'])}
    with FakeCluster(logs=logs, offered=offered, topic_id=UUID(int=7)) as fake:
        yield fake


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "out"))


def topic_of(fake: FakeCluster, folder: Path, format_: dict[str, Any]) -> TypedTopic:
    topic = TypedTopic(fake=fake, folder=folder / "lake", format_=format_)
    assert topic.load().error is None
    return topic


def request(topic: TypedTopic) -> RedecodeRequest:
    settings = topic.settings
    return RedecodeRequest(
        table=topic.table,
        format=settings.format_of("clicks"),
        open_registry=partial(open_schema_registry, settings),
        run="again",
    )


def whole(increment: Increment) -> pa.RecordBatchReader:
    return increment.arrow()


def apply(topic: TypedTopic, output: DeltaOutput) -> dict[str, Any]:
    return dict(apply_increment(topic.table, whole, consumer="c", into=output) or {})


def newest(topic: TypedTopic) -> LedgerEntry:
    entry = topic.table.snapshot().entry
    assert entry is not None
    return entry


def check_same(topic: TypedTopic, output: DeltaOutput) -> None:
    """Check that the output has the rows of the table, with all their columns."""
    source = DeltaTable(topic.table.uri).to_pyarrow_table()
    copy = DeltaTable(output.uri).to_pyarrow_table().select(source.schema.names)
    order = [("_kafka_partition", "ascending"), ("_kafka_offset", "ascending")]
    assert copy.sort_by(order).to_pylist() == source.sort_by(order).to_pylist()


def test_rows_that_were_decoded_again_replace_themselves(
    fake: FakeCluster, tmp_path: Path, output: DeltaOutput
) -> None:
    topic = topic_of(fake, tmp_path, STRICT)
    assert apply(topic, output)["new"] == 4
    append(fake.logs[0], [b'{"id": 3}'])
    topic.load()
    topic.format_ = LENIENT
    result = redecode(request(topic))
    assert (result.failure, result.decoded) == (None, 1)
    assert [str(piece) for piece in newest(topic).written] == ["partition 0 [1, 2)"]
    done = apply(topic, output)
    assert (done["new"], done["replaced"]) == (1, 1)
    check_same(topic, output)
    rewind(plan_rewind(topic.table, 2, run="back"))
    assert apply(topic, output)["replaced"] == 1
    check_same(topic, output)


# fault N43
def test_only_the_replayed_offsets_are_replaced(fake: FakeCluster, tmp_path: Path, output: DeltaOutput) -> None:
    topic = topic_of(fake, tmp_path, LENIENT)
    apply(topic, output)
    DeltaTable(topic.table.uri).delete("_kafka_offset = 1")
    asked = ReplayRequest.parse("clicks", "1", "3", ["0"], now=datetime(2026, 1, 1, tzinfo=UTC))
    with open_cluster(topic.settings, "main") as cluster:
        result = replay(Loader.of(topic.settings, cluster, no_spark).run, topic.table, asked)
    assert result.changed, result
    assert [str(piece) for piece in newest(topic).written] == ["partition 0 [1, 3)"]
    assert len(newest(topic).ranges) == 2
    assert apply(topic, output)["replaced"] == 2
    check_same(topic, output)


def test_a_conversion_replaces_all_rows(fake: FakeCluster, tmp_path: Path, output: DeltaOutput) -> None:
    topic = topic_of(fake, tmp_path, {})

    def places(increment: Increment) -> pa.RecordBatchReader:
        return increment.arrow([])

    assert apply_increment(topic.table, places, consumer="c", into=output)
    topic.format_ = LENIENT
    assert convert_table(request(topic)).failure is None
    append(fake.logs[1], [b'{"id": 6}'])
    topic.load()
    done = apply_increment(topic.table, places, consumer="c", into=output)
    assert done is not None
    assert (done["new"], done["replaced"]) == (1, 4)
    assert DeltaTable(output.uri).to_pyarrow_table().num_rows == 5


def test_new_columns_of_a_topic_are_columns_of_the_output(
    fake: FakeCluster, tmp_path: Path, output: DeltaOutput
) -> None:
    topic = topic_of(fake, tmp_path, {"format": "json", "max_bad_share": 1})
    apply(topic, output)
    append(fake.logs[1], [b'{"id": 6, "name": "x", "place": {"x": 1}}'])
    topic.load()
    apply(topic, output)
    append(fake.logs[1], [b'{"id": 7, "place": {"x": 1, "y": 2}}'])
    topic.load()
    apply(topic, output)
    check_same(topic, output)


def test_an_entry_keeps_what_was_written(fake: FakeCluster, tmp_path: Path) -> None:
    topic = topic_of(fake, tmp_path, STRICT)
    entry = newest(topic)
    assert entry.written == ()
    assert "written" not in entry.to_json()
    topic.format_ = LENIENT
    redecode(request(topic))
    entry = newest(topic)
    assert entry.written
    assert LedgerEntry.from_json(entry.to_json()) == entry
