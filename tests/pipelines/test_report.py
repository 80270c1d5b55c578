"""What loads and proofs look like as metadata."""

import dagster as dg

from pipelines.loading.outcome import PartitionLoad, TopicLoad
from pipelines.loading.verify import PartitionProof, Proof
from pipelines.report import check_metadata, metadata


def part(number: int) -> PartitionLoad:
    return PartitionLoad(broker=0, partition=number, start=10, end=30, rows=2, gaps={"chosen": 1}, lag=5, seconds=0.25)


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
    )
    found = metadata(load)
    numbers = {name: value.value for name, value in found.items() if isinstance(value, dg.IntMetadataValue)}
    assert numbers == {"rows": 4, "bytes": 40, "files": 2, "lag": 10, "table_version": 3}
    assert isinstance(found["rows_per_second"], dg.FloatMetadataValue)
    assert found["rows_per_second"].value == 2.0
    assert found["table"] == dg.MetadataValue.path("/lake/main/~43licks")
    assert found["topic"].value == "Clicks"
    assert found["warnings"].value == "broker 1 is away"
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
        "lag": 5,
        "seconds": 0.25,
        "gaps": "chosen: 1",
    }


def test_the_table_of_partitions_comes_first_and_is_bounded() -> None:
    found = metadata(TopicLoad(topic="a", table="t", partitions=tuple(map(part, range(2000)))))
    assert next(iter(found)) == "partitions"
    table = found["partitions"]
    assert isinstance(table, dg.TableMetadataValue)
    assert len(table.records) == 500
    assert found["lag"].value == 10_000


def test_a_load_that_never_reached_its_table_shows_the_error_alone() -> None:
    found = metadata(TopicLoad(topic="a", table="", error="RegistryError: gone"))
    assert found["error"].value == "RegistryError: gone"
    assert not {"table", "table_version", "warnings"} & found.keys()


def test_proofs_add_up_and_name_their_problems() -> None:
    one = PartitionProof(
        incarnation="7", broker=0, partition=1, start=0, end=9, rows=3, gaps={}, missing=2, duplicates=1
    )
    found = check_metadata(
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
