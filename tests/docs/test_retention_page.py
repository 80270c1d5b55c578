"""The example of docs/retention.md continues with the rows that are there."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment
from resources.errors import RowsRetired
from tests.docs.pages import ROOT, run_blocks
from tests.pipelines.maintenance.old_rows import DatedTable

PAGE = ROOT / "docs" / "retention.md"


def test_the_example_continues_after_rows_that_the_consumer_has_not_seen(tmp_path: Path) -> None:
    table, output = DatedTable(tmp_path / "lake"), DeltaOutput(uri=str(tmp_path / "out"))

    def transform(increment: Increment) -> object:
        return increment.arrow(["value"])

    def load_day(number: int) -> None:
        table.today = number
        table.commit(table.records(10 * number, 10 * number + 10))

    load_day(0)
    apply_increment(table.table, transform, consumer="sizes", into=output)
    load_day(1)
    load_day(2)
    table.retire(2)
    with pytest.raises(RowsRetired):
        apply_increment(table.table, transform, consumer="sizes", into=output)
    [example] = [block.text for block in run_blocks(PAGE, "python")]
    example = example.replace('"lake/main/clicks"', "table")
    exec(example, {"apply_increment": apply_increment, "table": table.table, "transform": transform, "output": output})
    offsets = DeltaTable(output.uri).to_pyarrow_table().column("_source_offset").to_pylist()
    assert sorted(offsets) == [*range(10), *range(20, 30)]
