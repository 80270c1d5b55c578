"""The metadata of loads, observations and proofs."""

from collections.abc import Mapping

import dagster as dg
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.defs.catalog.metadata import Metadata, load_metadata, log_progress, proof_metadata, status_metadata
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.slice_facts import Observations, SliceFacts
from pipelines.reports.outcome import PartitionLoad, TopicLoad
from pipelines.status.status import PartitionStatus, RetentionPeriod, RetentionSource, TopicStatus
from pipelines.verify.verify import PartitionProof, Proof


def stored(metadata: Metadata) -> Mapping[str, dg.MetadataValue]:
    """The metadata as Dagster stores it."""
    return dg.AssetMaterialization("any", metadata=metadata).metadata


def part(number: int) -> PartitionLoad:
    return PartitionLoad(
        offsets=OffsetRange(BrokerPartition(0, number), 10, 30),
        rows=2,
        gaps={"chosen": 1},
        lag_before=25,
        lag=5,
        seconds=0.25,
        source="0@b:9092",
    )


NOW = 10_000_000_000


def behind(topic: str = "Clicks") -> TopicStatus:
    """A topic with a lag of two records; the older one has waited for an hour."""
    return TopicStatus(
        cluster="main",
        topic=topic,
        incarnation="1",
        table="/lake",
        kept=RetentionPeriod(ms=7_200_000, by=RetentionSource.BROKERS),
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
        slowest=SliceFacts(
            range=CommittedRange(offsets=OffsetRange(BrokerPartition(0, 1), 10, 30), rows=2),
            observed=Observations(seconds=0.25),
        ),
    )
    metadata = stored(load_metadata(load, late_before_s=7.25, after=behind()))
    numbers = {name: value.value for name, value in metadata.items() if isinstance(value, dg.IntMetadataValue)}
    assert numbers == {
        "rows": 4,
        "bytes": 40,
        "files": 2,
        "gaps": 2,
        "bad_records": 0,
        "lag_before": 50,
        "lag": 10,
        "table_version": 3,
    }
    assert isinstance(metadata["rows_per_second"], dg.FloatMetadataValue)
    assert metadata["rows_per_second"].value == 2.0
    assert metadata["table"] == dg.MetadataValue.path("/lake/main/~43licks")
    assert metadata["topic"].value == "Clicks"
    assert metadata["warnings"].value == "broker 1 is away"
    assert metadata["slowest_slice"].value == "partition 0-1 [10, 30): 2 rows in 0.2 s"
    assert metadata["lag_seconds_before"].value == 7.2
    assert {"lag_seconds", "hours_until_lost"} <= metadata.keys()
    assert "error" not in metadata
    table = metadata["partitions"]
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
    metadata = stored(load_metadata(TopicLoad(topic="a", table="t", partitions=tuple(map(part, range(2000))))))
    assert next(iter(metadata)) == "partitions"
    table = metadata["partitions"]
    assert isinstance(table, dg.TableMetadataValue)
    assert len(table.records) == 500
    assert metadata["lag"].value == 10_000


def test_each_table_of_a_topic_has_its_rows_and_its_version() -> None:
    others = (TopicLoad(topic="a/b", table="t2", rows=4, version=2, files=1),)
    metadata = stored(load_metadata(TopicLoad(topic="a", table="t", rows=3, version=7, files=2, tables=others)))
    tables = metadata["tables"]
    assert isinstance(tables, dg.TableMetadataValue)
    assert [record.data for record in tables.records] == [
        {"topic": "a", "version": 7, "rows": 3, "files": 2},
        {"topic": "a/b", "version": 2, "rows": 4, "files": 1},
    ]
    assert "tables" not in stored(load_metadata(TopicLoad(topic="a", table="t")))


def test_a_load_that_failed_before_its_table_has_only_the_error() -> None:
    metadata = stored(load_metadata(TopicLoad(topic="a", table="", error="RegistryError: gone")))
    assert metadata["error"].value == "RegistryError: gone"
    assert not {"table", "table_version", "warnings", "lag_seconds", "lag_seconds_before"} & metadata.keys()


def test_a_status_is_numbers_of_one_topic_to_plot() -> None:
    metadata = stored(status_metadata(behind("a"), NOW))
    assert {name: value.value for name, value in metadata.items()} == {
        "state": "new",
        "lag": 7,
        "lag_seconds": 3600.0,
        "hours_until_lost": 1.0,
        "bad_records": 0,
    }


def test_a_proof_adds_up_its_partitions_and_names_its_problems() -> None:
    partition = PartitionProof(
        offsets=OffsetRange(BrokerPartition(0, 1), 0, 9), incarnation="7", rows=3, gaps={}, missing=2, duplicates=1
    )
    proof = Proof(topic="a", table="t", partitions=(partition, partition), problems=("a file is missing",))
    metadata = stored(proof_metadata(proof))
    assert {name: metadata[name].value for name in ("rows", "missing", "duplicates")} == {
        "rows": 6,
        "missing": 4,
        "duplicates": 2,
    }
    assert metadata["problems"].value == "a file is missing"
    table = metadata["partitions"]
    assert isinstance(table, dg.TableMetadataValue)
    assert len(table.records) == 2


def test_the_log_has_at_most_one_line_of_progress_per_five_percent(capsys: pytest.CaptureFixture[str]) -> None:
    log_line = log_progress(dg.build_op_context().log, "clicks")
    for done in (0, 10, 12, 14, 50, 100):
        log_line(done, 100)
    lines = [line.partition("clicks: ")[2] for line in capsys.readouterr().err.splitlines()]
    assert [line.partition(", about ")[0] for line in lines] == [
        "10 of 100 offsets fetched",
        "50 of 100 offsets fetched",
    ]
    assert all(line.endswith(" s left") for line in lines)
