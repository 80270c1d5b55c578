"""The logs of a data directory are found, created, or refused."""

import logging
from pathlib import Path

import pytest

from kafka_io.errors import BrokerError
from kafka_io.testing.broker import wall_ms
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.logs import BrokerLogs07
from tests.kafka_io.testing.v07.talk import message, numbered


def logs_in(data_dir: Path, new_topics: list[str] | None = None) -> BrokerLogs07:
    config = BrokerConfig07(broker_id=7, data_dir=data_dir, partitions=2, topic_partitions={"three": 3})
    logs = BrokerLogs07(config, clock=wall_ms, on_change=(new_topics if new_topics is not None else []).append)
    logs.load()
    return logs


def test_a_topic_name_can_contain_dashes(tmp_path: Path) -> None:
    (tmp_path / "my-topic-1-1").mkdir()
    logs = logs_in(tmp_path)
    assert logs.find("my-topic-1", 1) is not None
    assert logs.find("my-topic", 1) is None
    logs.close()


@pytest.mark.parametrize("name", ["nodash", "-0", "topic-", "topic-x", "topic-00", ".-0", "\x01-0", "file-0"])
def test_directories_and_files_that_are_not_logs_are_ignored(tmp_path: Path, name: str) -> None:
    if name == "file-0":
        (tmp_path / name).touch()
    else:
        (tmp_path / name).mkdir()
    new_topics: list[str] = []
    logs_in(tmp_path, new_topics).close()
    assert new_topics == []
    assert [path.name for path in tmp_path.rglob("*")] == [name]


@pytest.mark.parametrize("topic", ["a b:c", "caf\u00e9", "a\\b", "*", "...", ".hidden", "x" * 255])
def test_a_topic_name_can_have_unusual_characters(tmp_path: Path, topic: str) -> None:
    assert logs_in(tmp_path).find(topic, 0) is None


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../etc", "a\x00", "a\n", "a\x7f", "\ue000", "x" * 256])
def test_a_topic_name_that_cannot_be_a_directory_is_refused(tmp_path: Path, topic: str) -> None:
    with pytest.raises(BrokerError) as refused:
        logs_in(tmp_path).find_or_create(topic, 0)
    assert (refused.value.code, refused.value.where.topic, list(tmp_path.iterdir())) == (-1, topic, [])


def test_partitions_are_counted_per_topic(tmp_path: Path) -> None:
    logs = logs_in(tmp_path)
    assert [logs.find("three", 2), logs.find("other", 1)] == [None, None]
    for topic, partition in (("three", 3), ("other", 2), ("other", -1)):
        with pytest.raises(BrokerError) as refused:
            logs.find(topic, partition)
        assert refused.value.code == 3
    assert {logs.any_partition("three") for _ in range(200)} == {0, 1, 2}


def test_a_partition_beyond_the_configured_count_is_not_served(tmp_path: Path) -> None:
    """The directory exists because the configured number of partitions was higher before."""
    (tmp_path / "other-2").mkdir()
    logs = logs_in(tmp_path)
    with pytest.raises(BrokerError):
        logs.find("other", 2)
    logs.close()


def test_each_new_topic_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "old-0").mkdir()
    (tmp_path / "old-1").mkdir()
    new_topics: list[str] = []
    logs = logs_in(tmp_path, new_topics)
    for topic, partition in (("new", 1), ("new", 0), ("new", 1), ("old", 0)):
        assert logs.find_or_create(topic, partition) is logs.find(topic, partition)
    assert new_topics == ["old", "new"]
    logs.close()


def test_recovery_logs_the_number_of_removed_bytes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "torn-0").mkdir()
    (tmp_path / "torn-0" / f"{0:020d}.kafka").write_bytes(b"".join(numbered(2)) + message(b"torn")[:10])
    with caplog.at_level(logging.WARNING):
        logs_in(tmp_path).close()
    assert "recovery removed 10 bytes after the last whole message [broker=7 topic=torn partition=0]" in caplog.text
