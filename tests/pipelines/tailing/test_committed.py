"""The committed offsets of a tail are the cursor of the lake's table, of this life of the topic."""

from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.tailing.committed import cursors
from resources.errors import TopicRecreated
from resources.lake import Lake
from tests.small_table import SmallTable


def topic(incarnation: str, *also: str) -> TopicEntry:
    return TopicEntry(name="clicks", incarnation=incarnation, partitions=(BrokerPartition(0, 0),), also=also)


def test_it_is_where_the_table_goes_on(tmp_path: Path) -> None:
    small = SmallTable(tmp_path)
    assert cursors(small.lake, "main", topic("7")) == {}
    small.commit(small.write(100, 150), small.write(0, 30, partition=1))
    expected = {BrokerPartition(0, 0): 150, BrokerPartition(0, 1): 30}
    assert cursors(small.lake, "main", topic("7")) == expected
    assert cursors(small.lake, "main", topic("8", "7")) == expected


def test_without_a_table_nothing_is_committed(tmp_path: Path) -> None:
    assert cursors(Lake(root=str(tmp_path)), "main", topic("7")) == {}


def test_another_life_of_the_topic_is_refused(tmp_path: Path) -> None:
    small = SmallTable(tmp_path)
    small.commit(small.write(0, 10))
    with pytest.raises(TopicRecreated):
        cursors(small.lake, "main", topic("8"))
