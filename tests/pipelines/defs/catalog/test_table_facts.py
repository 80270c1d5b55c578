"""What Dagster knows of a table: the meaning of its columns, and sample rows."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.defs.catalog.table_facts import sample_rows, table_facts
from pipelines.layout.layout import CONVERTED, RAW, TYPED, TableLayout
from pipelines.layout.rows import TABLE_SCHEMA
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

if TYPE_CHECKING:
    from tests.small_table import SmallTable


def test_every_column_of_a_table_has_a_description(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    facts = table_facts(small.lake, "main", "clicks")
    assert facts is not None
    assert [column.name for column in facts.metadata["dagster/column_schema"].columns] == TABLE_SCHEMA.names
    assert all(column.description for column in facts.metadata["dagster/column_schema"].columns)
    assert "sample_rows" not in facts.metadata


@pytest.mark.parametrize("layout", [RAW, TYPED, CONVERTED])
def test_all_columns_that_penstock_adds_have_a_meaning(layout: TableLayout) -> None:
    assert layout.meanings.keys() == set(layout.table_schema.names)


def test_the_newest_range_gives_the_sample(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 100))
    samples = sample_rows(small.table, small.table.snapshot(), 3)
    assert samples is not None
    assert [record.data["offset"] for record in samples.records] == [50, 60, 70]
    assert [column.name for column in samples.schema.columns] == TABLE_SCHEMA.names


def test_samples_leave_out_personal_columns_and_the_bytes_that_hold_them(fake: FakeCluster, tmp_path: Path) -> None:
    # fault Y06
    value = b'{"email": "zelda", "id": 1, "address": {"mail": "zelda", "city": "Ulm"}}'
    fake.logs = {0: log_of([value, b'{"email": "zelda'])}
    format_ = {"format": "json", "key_format": "text", "header_columns": ["id"], "max_bad_share": 1}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)
        assert topic.load().error is None

        def columns(*personal: str) -> set[str]:
            samples = sample_rows(topic.table, topic.table.snapshot(), 3, personal)
            assert samples is not None
            assert len(samples.records) == 2
            assert ("zelda" in str(samples.records)) == ("email" not in personal)
            return {column.name for column in samples.schema.columns}

        all_columns = columns()
        assert all_columns - columns("email", "address.mail") == {"email", "address", "_raw"}
        assert all_columns - columns("_kafka_key_value") == {"_kafka_key", "_kafka_key_value"}
        for name in ("_kafka_headers", "_kafka_header_id"):
            assert all_columns - columns(name) == {"_kafka_headers", "_kafka_header_id"}
        topic.format_ = {**format_, "personal": ["_kafka_key", "_kafka_headers"]}
        append(topic.fake.logs[0], [value])
        assert topic.load().error is None
        marked = sample_rows(topic.table, topic.table.snapshot(), 3)
        assert marked is not None
        hidden = {"_kafka_key", "_kafka_key_value", "_kafka_headers", "_kafka_header_id"}
        assert all_columns - {column.name for column in marked.schema.columns} == hidden
        assert topic.table.snapshot().layout.personal == {"_kafka_key_value", "_kafka_header_id"}
