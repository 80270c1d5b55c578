"""The cursors of the topic's table, at which a tail from `committed` begins."""

from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition, TopicEntry
from pipelines.tail.query import table_cursors
from resources.errors import TopicRecreated
from resources.settings.settings import Settings
from tests.small_table import SmallTable


def topic(incarnation: str, *also: str) -> TopicEntry:
    return TopicEntry(name="clicks", incarnation=incarnation, partitions=(BrokerPartition(0, 0),), also=also)


def settings(lake: str) -> Settings:
    return Settings.model_validate({"lake": lake, "clusters": {"main": {"bootstrap": "127.0.0.1:1"}}})


def test_the_cursors_are_the_ends_of_the_table(tmp_path: Path) -> None:
    small = SmallTable(tmp_path)
    assert table_cursors(settings(small.lake.root), "main", topic("7")) == {}
    small.commit(small.write(100, 150), small.write(0, 30, partition=1))
    expected = {BrokerPartition(0, 0): 150, BrokerPartition(0, 1): 30}
    assert table_cursors(settings(small.lake.root), "main", topic("7")) == expected
    assert table_cursors(settings(small.lake.root), "main", topic("AAAAAAAAAAAAAAAAAAAABw", "7")) == expected


def test_without_a_table_there_are_no_cursors(tmp_path: Path) -> None:
    assert table_cursors(settings(str(tmp_path)), "main", topic("7")) == {}


def test_another_incarnation_of_the_topic_is_refused(tmp_path: Path) -> None:
    small = SmallTable(tmp_path)
    small.commit(small.write(0, 10))
    with pytest.raises(TopicRecreated):
        table_cursors(settings(small.lake.root), "main", topic("8"))
