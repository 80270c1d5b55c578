"""What Dagster knows of a table: the meaning of its columns, and sample rows."""

from typing import TYPE_CHECKING

import pytest

from pipelines.defs.catalog.table_facts import sample_rows, table_facts
from pipelines.layout.layout import CONVERTED, RAW, TYPED, TableLayout
from pipelines.layout.rows import TABLE_SCHEMA

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
