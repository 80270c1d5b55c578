"""After any history, an output that followed it in increments has the same rows as the source."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from pipelines.increments.increment import Increment, apply_increment
from tests.pipelines.increments.stored_outputs import StoredOutput, rows_of
from tests.pipelines.increments.table_histories import EVENTS, SourceRow, TableHistory
from tests.thorough import first

pytestmark = pytest.mark.slow  # long histories


def mirrored(stored: StoredOutput) -> list[SourceRow]:
    """The rows of the output."""
    table = stored.table()
    return [] if table is None else rows_of(table)


def delivered_once(increment: Increment) -> pa.Table:
    rows = increment.arrow(["value"]).read_all()
    places = rows_of(rows)
    assert len(set(places)) == len(places)
    return rows


# fault N43
@pytest.mark.parametrize("seed", first(2, range(8)))
def test_an_output_equals_a_full_recomputation(seed: int, stored: StoredOutput, tmp_path: Path) -> None:
    random = Random(seed)
    history = TableHistory(tmp_path / "lake", random)
    output = stored.output()
    for event in random.choices(EVENTS, k=18):
        history.happen(event)
        if random.random() < 0.4:
            apply_increment(history.table, delivered_once, consumer="mirror", into=output)
            assert mirrored(stored) == history.source_rows(), history.events
    apply_increment(history.table, delivered_once, consumer="mirror", into=output)
    assert mirrored(stored) == history.source_rows(), history.events
    assert apply_increment(history.table, delivered_once, consumer="mirror", into=output) is None


@pytest.mark.parametrize("kind", ["delta"])
@pytest.mark.parametrize("seed", first(1, range(4)))
def test_a_consumer_that_ignores_replaced_rows_gets_each_new_offset(
    seed: int, stored: StoredOutput, tmp_path: Path
) -> None:
    """If there are neither rewinds nor cuts, each offset is delivered exactly once."""
    random = Random(seed)
    history = TableHistory(tmp_path / "lake", random)
    output = stored.output()
    for event in random.choices([event for event in EVENTS if event not in {"rewind", "cut"}], k=15):
        history.happen(event)
        apply_increment(
            history.table, lambda increment: increment.arrow(["value"]), consumer="m", into=output, on_replaced="ignore"
        )
    assert [row[:3] for row in mirrored(stored)] == [row[:3] for row in history.source_rows()]


def test_two_sources_share_an_output(stored: StoredOutput, tmp_path: Path) -> None:
    """Rows of another source with the same partition, offset and loading time stay when rows are removed."""
    first, second = TableHistory(tmp_path / "first", Random(1)), TableHistory(tmp_path / "second", Random(1))
    second.topic = replace(second.topic, name="views")
    output = stored.output()
    for history in (first, second, first, second):
        history.happen("load")
        apply_increment(history.table, delivered_once, consumer="both", into=output)
    first.happen("cut")
    apply_increment(first.table, delivered_once, consumer="both", into=output)
    assert mirrored(stored) == sorted([*first.source_rows(), *second.source_rows()])
