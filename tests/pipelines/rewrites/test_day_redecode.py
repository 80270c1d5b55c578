"""Rows in folders of event days are decoded again, and raw tables with such folders become typed ones."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.redecode_result import TopicRedecode
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster
from tests.fakes.days import DAY_MS, FIRST_DAY, FIRST_MS, DayTopic, append_at, day_topic, log_at

pytestmark = pytest.mark.slow  # each test fills a table and changes it

TIMES = [FIRST_MS, FIRST_MS + DAY_MS, 0, FIRST_MS + 1, FIRST_MS + DAY_MS + 1]
NEXT = FIRST_DAY + timedelta(days=1)
DAYS = dict(enumerate([FIRST_DAY, NEXT, None, FIRST_DAY, NEXT]))


def again(topic: DayTopic, decode: Callable[[RedecodeRequest], TopicRedecode]) -> TopicRedecode:
    """Decode the table again with the present settings."""
    settings = topic.settings
    registry, format_ = partial(open_schema_registry, settings), settings.format_of("clicks")
    return decode(RedecodeRequest(table=topic.table, format=format_, open_registry=registry, run="again"))


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with FakeCluster(logs={0: log_at(TIMES)}) as fake:
        yield fake


def test_a_converted_table_keeps_its_folders_and_its_days(fake: FakeCluster, tmp_path: Path) -> None:
    topic = day_topic(fake, tmp_path / "lake", {})
    topic.load()
    topic.format_ = {**topic.format_, "format": "json"}
    assert again(topic, convert_table).failure is None
    assert topic.layout.is_typed
    assert topic.layout.partition_column == "event_day"
    assert topic.days() == DAYS
    append_at(fake.logs[0], TIMES, [b'{"event_day": 1, "date": 2}'] * len(TIMES))
    assert topic.load().error is None
    assert topic.days() == {**DAYS, **{offset + len(TIMES): day for offset, day in DAYS.items()}}
    assert topic.rows("event_day_2", "date")[-1] == {"event_day_2": 1, "date": 2}
    assert topic.problems() == ()


@pytest.mark.parametrize("partition_by", ["event_day", "at"])
def test_rows_that_decode_now_are_in_the_folder_of_their_day(
    partition_by: str, fake: FakeCluster, tmp_path: Path
) -> None:
    texts = ["2024-03-01T01:00:00Z", "2024-03-02T01:00:00Z"]
    values = [
        b'{"at": "%b", "id": %b}' % (texts[number % 2].encode(), b'"x"' if number > 1 else b"1") for number in range(5)
    ]
    fake.logs = {0: log_at(TIMES, values)}
    columns: dict[str, Any] = {"at": "timestamp", "id": "long"}
    format_ = {"format": "json", "columns": columns, "max_bad_share": 1, "partition_by": partition_by}
    topic = day_topic(fake, tmp_path / "lake", format_)
    assert topic.load().bad_records == 3
    by_field = dict(enumerate([FIRST_DAY, NEXT, FIRST_DAY, NEXT, FIRST_DAY]))
    before = DAYS if partition_by == "event_day" else {**by_field, 2: None, 3: None, 4: None}
    assert topic.days() == before
    topic.format_ = {**format_, "columns": {**columns, "id": "string"}}
    result = again(topic, redecode)
    assert (result.failure, result.decoded) == (None, 3)
    assert topic.days() == (DAYS if partition_by == "event_day" else by_field)
    assert topic.table.snapshot().layout.partition_by == partition_by
    assert [row["_error"] for row in topic.rows("_error")] == [None] * 5
