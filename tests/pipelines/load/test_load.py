"""Loads end to end: real ZooKeeper, real brokers, real Spark, real Delta."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition
from kafka_io.records.build import message_set
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.v07.messages import OffsetsRequest07, ProduceRequest07
from pipelines.plan.positions import NamedPosition
from pipelines.plan.window import LoadWindow
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import Proof
from tests.live import LiveCluster, numbered

EARLIEST = LoadWindow(since=NamedPosition.EARLIEST)

pytestmark = [pytest.mark.spark, pytest.mark.zookeeper]

Load = Callable[..., TopicLoad]
Prove = Callable[[str], Proof]


def table(live: LiveCluster, topic: str) -> pa.Table:
    return DeltaTable(live.lake / "main" / topic).to_pyarrow_table()


def values(live: LiveCluster, topic: str) -> Counter[bytes]:
    return Counter(table(live, topic).column("value").to_pylist())


def numbers(rows: pa.Table) -> list[int]:
    return [json.loads(value)["number"] for value in rows.column("value").to_pylist()]


def test_every_message_is_one_row_and_a_second_load_takes_only_what_is_new(
    live: LiveCluster, load: Load, prove: Prove
) -> None:
    messages = numbered(1000)
    live.publish("clicks", messages[:900])
    first = load("clicks")
    assert (first.error, first.rows) == (None, 900)
    assert values(live, "clicks") == Counter(messages[:900])
    live.publish("clicks", messages[900:])
    second = load("clicks")
    assert (second.error, second.rows) == (None, 100)
    assert values(live, "clicks") == Counter(messages)
    ends = {partition.offsets.partition: partition.offsets.stop for partition in first.partitions}
    assert {
        partition.offsets.partition: partition.offsets.start for partition in second.partitions
    }.items() <= ends.items()
    third = load("clicks")
    assert (third.error, third.rows, third.files, third.version) == (None, 0, 0, second.version)
    assert all(
        partition.offsets.start == partition.offsets.stop and partition.lag == 0 for partition in third.partitions
    )
    proof = prove("clicks")
    assert proof.proven, proof.problems
    assert sum(partition.rows for partition in proof.partitions) == 1000
    assert len(proof.partitions) == 4


def test_rows_are_identified_by_offset_and_inner_and_stay_in_order(live: LiveCluster, load: Load) -> None:
    live.publish("clicks", numbered(300))
    load("clicks")
    rows = table(live, "clicks").sort_by(
        [("broker", "ascending"), ("partition", "ascending"), ("offset", "ascending"), ("inner", "ascending")]
    )
    keys = list(
        zip(*(rows.column(name).to_pylist() for name in ("broker", "partition", "offset", "inner")), strict=True)
    )
    assert len(set(keys)) == 300
    by_partition: dict[tuple[int, int], list[int]] = {}
    for (broker, partition, _, _), number in zip(keys, numbers(rows), strict=True):
        by_partition.setdefault((broker, partition), []).append(number)
    assert all(values == sorted(values) for values in by_partition.values())
    assert rows.column("key").null_count == rows.column("timestamp").null_count == 300
    assert set(rows.column("topic").to_pylist()) == {"clicks"}
    assert rows.column("loaded_at").null_count == 0


def test_duckdb_and_polars_agree_with_the_source(live: LiveCluster, load: Load) -> None:
    live.publish("clicks", numbered(500))
    load("clicks")
    uri = live.lake / "main" / "clicks"
    dataset = DeltaTable(uri).to_pyarrow_dataset()
    with duckdb.connect() as database:
        database.register("held", dataset)
        counted = database.execute(
            "SELECT count(*), sum(CAST(json_extract(decode(value), '$.number') AS BIGINT)) FROM held"
        ).fetchone()
    assert counted == (500, sum(range(500)))
    frame = pl.scan_delta(str(uri)).select(pl.col("value").bin.size().sum().alias("bytes"), pl.len()).collect()
    assert frame.row(0) == (sum(map(len, numbered(500))), 500)


def test_an_empty_topic_becomes_an_empty_table(live: LiveCluster, load: Load, prove: Prove) -> None:
    live.publish("clicks", [b"x"])
    live.configure('start = "latest"')
    result = load("clicks")
    assert (result.error, result.rows) == (None, 0)
    live.publish("clicks", [b"y"])
    assert load("clicks").rows == 1
    assert values(live, "clicks") == Counter([b"y"])
    assert prove("clicks").proven


def test_a_backfill_loads_the_offsets_before_the_table_s_start(live: LiveCluster, load: Load, prove: Prove) -> None:
    live.configure('start = "latest"')
    live.publish("clicks", numbered(600))
    assert load("clicks").rows == 0
    live.publish("clicks", numbered(100, start=600))
    assert load("clicks").rows == 100
    live.publish("clicks", numbered(50, start=700))
    result = load("clicks", window=EARLIEST)
    assert (result.error, result.rows) == (None, 650)
    assert values(live, "clicks") == Counter(numbered(750))
    assert load("clicks", window=EARLIEST).rows == 0
    assert prove("clicks").proven


def test_capped_runs_make_progress_until_everything_is_loaded(live: LiveCluster, load: Load, prove: Prove) -> None:
    live.publish("clicks", numbered(1200), codecs=("none",), batch=10)
    live.settings.write_text(
        live.settings.read_text().replace("slice_bytes = 16384", "bytes_per_run = 16000\nslice_bytes = 4096")
    )
    runs = 0
    while (result := load("clicks")).rows:
        runs += 1
        assert result.bytes <= 16000 + 4 * len(max(numbered(1200), key=len)) + 4 * 10  # a message per partition more
        assert prove("clicks").proven
    assert runs > 2
    assert values(live, "clicks") == Counter(numbered(1200))


def test_a_broker_that_is_down_holds_back_only_its_own_partitions(live: LiveCluster, load: Load, prove: Prove) -> None:
    live.publish("clicks", numbered(400))
    load("clicks")
    live.publish("clicks", numbered(400, start=400))
    live.brokers[1].stop()
    result = load("clicks")
    assert result.error is None
    assert {partition.offsets.partition.broker for partition in result.partitions} == {0}
    assert len(result.warnings) == 2
    assert "partition 1-0 is not registered" in result.warnings[0]
    with BrokerServer07(live.brokers[1].config, zookeeper=live.zookeeper):
        assert load("clicks").error is None
    assert values(live, "clicks") == Counter(numbered(800))
    assert prove("clicks").proven


def test_a_corrupt_message_stops_its_partition_at_the_slice_and_says_where(
    live: LiveCluster, load: Load, prove: Prove
) -> None:  # faults R01, S07
    live.publish("clicks", numbered(400), codecs=("none",))
    segment = next(iter(sorted((live.home / "broker-0").glob("clicks-1/*.kafka"))))
    data = bytearray(segment.read_bytes())
    data[40] ^= 1
    segment.write_bytes(data)
    result = load("clicks")
    assert result.error is not None
    assert "Corrupt" in result.error
    for word in ("cluster=main", "broker=0@127.0.0.1", "topic=clicks", "partition=0-1", "offset=0"):
        assert word in result.error
    assert {partition.offsets.partition for partition in result.partitions if partition.rows} == {
        BrokerPartition(0, 0),
        BrokerPartition(1, 0),
        BrokerPartition(1, 1),
    }
    assert [partition.offsets.stop for partition in result.partitions if not partition.rows] == [0]
    assert prove("clicks").proven
    data[40] ^= 1
    segment.write_bytes(data)
    assert load("clicks").error is None
    assert values(live, "clicks") == Counter(numbered(400))


def test_a_log_that_was_wiped_stops_the_topic(live: LiveCluster, load: Load) -> None:  # fault B05
    live.publish("clicks", numbered(100))
    load("clicks")
    config = live.brokers[0].config
    live.brokers[0].stop()
    for segment in Path(config.data_dir).glob("clicks-*/*.kafka"):
        segment.write_bytes(b"")
    with BrokerServer07(config, zookeeper=live.zookeeper):
        result = load("clicks")
    assert result.error is not None
    assert "CursorAheadOfLog: the log ends at 0, before the committed offset" in result.error


def test_an_unknown_topic_is_reported_in_one_sentence(live: LiveCluster, load: Load) -> None:
    live.publish("clicks", [b"x"])
    assert load("views").error == (
        "TopicUnknown: the cluster has no such topic; `penstock topics` lists its topics "
        "[cluster=main topic=views] (PS-104)"
    )


@pytest.mark.parametrize("topic", ["a b:c", "caf\u00e9", "A", "a...b", "_delta_log"])
def test_any_legal_topic_name_can_be_loaded(
    live: LiveCluster, load: Load, prove: Prove, topic: str
) -> None:  # fault X03
    live.publish(topic, numbered(10))
    assert load(topic).rows == 10
    assert prove(topic).proven


def test_empty_compressed_messages_are_counted_as_gaps(
    live: LiveCluster, load: Load, prove: Prove
) -> None:  # fault R24
    live.publish("clicks", [b"x"])
    with live.open() as cluster:
        place = BrokerPartition(0, 0)
        connection = cluster.partition("clicks", place).connection
        connection.send(ProduceRequest07("clicks", 0, message_set([], codec=1) * 3 + message_set([b"y"])))
        connection.request(OffsetsRequest07("clicks", 0, -1, 1))
    result = load("clicks")
    assert (result.error, result.rows) == (None, 2)
    assert [
        partition.gaps for partition in result.partitions if partition.offsets.partition == BrokerPartition(0, 0)
    ] == [{"empty": 3}]
    proof = prove("clicks")
    assert proof.proven
    assert sum(partition.gaps.get("empty", 0) for partition in proof.partitions) == 3
