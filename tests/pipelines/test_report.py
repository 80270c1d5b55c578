"""What loads and proofs look like as metadata."""

import dagster as dg

from kafka_io.model import BrokerPartition
from pipelines.loading.outcome import PartitionLoad, SliceLoad, TopicLoad
from pipelines.loading.verify import PartitionProof, Proof
from pipelines.report import load_metadata, proof_metadata, status_metadata
from pipelines.watching.status import By, Kept, PartitionStatus, TopicStatus


def part(number: int) -> PartitionLoad:
    return PartitionLoad(
        broker=0,
        partition=number,
        start=10,
        end=30,
        rows=2,
        gaps={"chosen": 1},
        lag_before=25,
        lag=5,
        seconds=0.25,
        source="0@b:9092",
    )


NOW = 10_000_000_000


def behind(topic: str = "Clicks") -> TopicStatus:
    """A topic whose oldest record has waited for an hour, of two that it has."""
    return TopicStatus(
        cluster="main",
        topic=topic,
        incarnation="1",
        table="/lake",
        kept=Kept(ms=7_200_000, by=By.BROKERS),
        partitions=(
            PartitionStatus(
                id=BrokerPartition(None, 0),
                earliest=0,
                latest=10,
                cursor=3,
                oldest_ms=NOW - 3_600_000,
                expires_ms=NOW + 3_600_000,
            ),
        ),
    )


def test_numbers_are_numbers_and_partitions_a_table() -> None:
    load = TopicLoad(
        topic="Clicks",
        table="/lake/main/~43licks",
        version=3,
        rows=4,
        bytes=40,
        files=2,
        seconds=2.0,
        partitions=(part(0), part(1)),
        warnings=("broker 1 is away",),
        slowest=SliceLoad(broker=0, partition=1, start=10, stop=30, rows=2, seconds=0.25),
    )
    found = load_metadata(load, late_before_s=7.25, after=behind())
    numbers = {name: value.value for name, value in found.items() if isinstance(value, dg.IntMetadataValue)}
    assert numbers == {
        "rows": 4,
        "bytes": 40,
        "files": 2,
        "gaps": 2,
        "lag_before": 50,
        "lag": 10,
        "table_version": 3,
    }
    assert isinstance(found["rows_per_second"], dg.FloatMetadataValue)
    assert found["rows_per_second"].value == 2.0
    assert found["table"] == dg.MetadataValue.path("/lake/main/~43licks")
    assert found["topic"].value == "Clicks"
    assert found["warnings"].value == "broker 1 is away"
    assert found["slowest_slice"].value == "partition 0-1 [10, 30): 2 rows in 0.2 s"
    assert found["lag_seconds_before"].value == 7.2
    assert {"lag_seconds", "hours_until_lost"} <= found.keys()
    assert "error" not in found
    table = found["partitions"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [column.name for column in table.schema.columns] == [*table.records[0].data]
    assert table.records[1].data == {
        "broker": 0,
        "partition": 1,
        "start": 10,
        "end": 30,
        "rows": 2,
        "lag_before": 25,
        "lag": 5,
        "seconds": 0.25,
        "source": "0@b:9092",
        "gaps": "chosen: 1",
    }


def test_the_table_of_partitions_comes_first_and_is_bounded() -> None:
    found = load_metadata(TopicLoad(topic="a", table="t", partitions=tuple(map(part, range(2000)))))
    assert next(iter(found)) == "partitions"
    table = found["partitions"]
    assert isinstance(table, dg.TableMetadataValue)
    assert len(table.records) == 500
    assert found["lag"].value == 10_000


def test_a_load_that_never_reached_its_table_shows_the_error_alone() -> None:
    found = load_metadata(TopicLoad(topic="a", table="", error="RegistryError: gone"))
    assert found["error"].value == "RegistryError: gone"
    assert not {"table", "table_version", "warnings", "lag_seconds", "lag_seconds_before"} & found.keys()


def test_how_topics_stand_is_a_line_each_and_totals_to_plot() -> None:
    found = status_metadata([behind("a"), behind("b")], NOW, {"b": "late"})
    numbers = {name: value.value for name, value in found.items() if not isinstance(value, dg.TableMetadataValue)}
    assert numbers == {
        "count": 2,
        "lag": 14,
        "problems": 1,
        "most_late_seconds": 3600.0,
        "hours_until_first_loss": 1.0,
    }
    table = found["topics"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [column.name for column in table.schema.columns] == [*table.records[0].data]
    assert table.records[1].data == {
        "topic": "b",
        "state": "new",
        "lag": 7,
        "late_seconds": 3600.0,
        "hours_until_lost": 1.0,
        "problem": "late",
    }


def test_of_no_topic_there_is_nothing_to_lose() -> None:
    found = status_metadata([], NOW, {})
    assert "hours_until_first_loss" not in found
    assert found["most_late_seconds"].value == 0.0


def test_proofs_add_up_and_name_their_problems() -> None:
    one = PartitionProof(
        incarnation="7", broker=0, partition=1, start=0, end=9, rows=3, gaps={}, missing=2, duplicates=1
    )
    found = proof_metadata(
        [
            Proof(topic="a", table="t", partitions=(one, one), problems=("a file is missing",)),
            Proof(topic="b", table="t", partitions=(one,)),
        ]
    )
    assert {name: found[name].value for name in ("rows", "missing", "duplicates")} == {
        "rows": 9,
        "missing": 6,
        "duplicates": 3,
    }
    assert found["problems"].value == "a: a file is missing"
    table = found["partitions"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [record.data["topic"] for record in table.records] == ["a", "a", "b"]
