"""Topics are created, listed and deleted, and they survive a restart."""

from pathlib import Path

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Corrupt
from kafka_io.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    ReplicaAssignment,
    TopicConfig,
)
from kafka_io.messages.delete_topics import DeleteTopic, DeleteTopicsRequest
from kafka_io.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataTopic
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import Client, batch, expected_values, values


def metadata(client: Client, *names: str, version: int = 12, creating: bool = False) -> MetadataResponse:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return client.ask(MetadataRequest(topics=topics or None, allow_auto_topic_creation=creating), version)


def delete(client: Client, name: str) -> int:
    request = DeleteTopicsRequest(topics=(DeleteTopic(name=name),), timeout_ms=1)
    return client.ask(request).responses[0].error_code


def summary(topic: MetadataTopic) -> tuple[int, str | None, int]:
    return topic.error_code, topic.name, len(topic.partitions)


def test_metadata_lists_all_topics_with_their_leader(start_modern: StartModern, connect: Connect) -> None:
    broker = start_modern(broker_id=5)
    client = connect(broker)
    client.create("clicks", 2)
    client.create("views", 1)
    answer = metadata(client)
    assert [(listed.node_id, listed.host, listed.port) for listed in answer.brokers] == [(5, "127.0.0.1", broker.port)]
    assert (answer.controller_id, len(answer.cluster_id or "")) == (5, 22)
    assert list(map(summary, answer.topics)) == [(0, "clicks", 2), (0, "views", 1)]
    partition = answer.topics[0].partitions[1]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (5, (5,), (5,))
    everything = client.ask(MetadataRequest(topics=()), 0)
    assert list(map(summary, everything.topics)) == [(0, "clicks", 2), (0, "views", 1)]


def test_a_topic_is_found_by_its_id(client: Client) -> None:
    [topic_id] = metadata(client, "clicks").topics
    request = (MetadataRequestTopic(topic_id=topic_id.topic_id, name=None),)
    assert client.ask(MetadataRequest(topics=request), 12).topics == (topic_id,)
    request = (MetadataRequestTopic(topic_id=type(topic_id.topic_id)(int=1), name=None),)
    assert client.ask(MetadataRequest(topics=request), 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_metadata_request_can_create_the_topic_that_it_names(start_modern: StartModern, connect: Connect) -> None:
    client = connect(start_modern(partitions=3))
    assert [summary(topic) for topic in metadata(client, "clicks").topics] == [(3, "clicks", 0)]
    assert [summary(topic) for topic in metadata(client, "clicks", creating=True).topics] == [(0, "clicks", 3)]
    assert [summary(topic) for topic in metadata(client, "views", version=1).topics] == [(0, "views", 3)]


def test_a_metadata_request_creates_no_topic_when_auto_creation_is_off(
    start_modern: StartModern, connect: Connect
) -> None:
    client = connect(start_modern(auto_create_topics=False))
    assert [summary(topic) for topic in metadata(client, "clicks", creating=True).topics] == [(3, "clicks", 0)]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x" * 250, "\u00e9", "a b"])
def test_a_topic_with_an_illegal_name_is_refused(client: Client, name: str) -> None:
    # fault Z11
    assert client.create(name) == ErrorCode.INVALID_TOPIC_EXCEPTION
    [shown_topic] = metadata(client, name, creating=True).topics
    assert shown_topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def new(**settings: object) -> CreatableTopic:
    defaults = {"name": "new", "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    return CreatableTopic(**{**defaults, **settings})  # type: ignore[arg-type]  # any mix of fields, as a client may send


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new(num_partitions=-1, replication_factor=-1), ErrorCode.NONE),
        (new(name="clicks"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (new(num_partitions=0), ErrorCode.INVALID_PARTITIONS),
        (new(num_partitions=2**31 - 1), ErrorCode.INVALID_PARTITIONS),
        (new(replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new(configs=(TopicConfig(name="retention.ms", value="1"),)), ErrorCode.INVALID_CONFIG),
        (new(assignments=(ReplicaAssignment(partition_index=0, broker_ids=(1,)),)), ErrorCode.NONE),
        (
            new(assignments=(ReplicaAssignment(partition_index=0, broker_ids=(2,)),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            new(assignments=(ReplicaAssignment(partition_index=1, broker_ids=(1,)),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_create_topics_checks_what_the_broker_supports(client: Client, topic: CreatableTopic, code: ErrorCode) -> None:
    for only_check in (True, False):
        answer = client.ask(CreateTopicsRequest(topics=(topic,), validate_only=only_check))
        assert answer.topics[0].error_code == code
    assert len(metadata(client).topics) == (1 if code else 2)


def test_a_deleted_topic_is_gone_and_its_name_can_be_used_again(client: Client, tmp_path: Path) -> None:
    # faults B05, B06
    client.produce("clicks", batch(3))
    [before] = metadata(client, "clicks").topics
    assert delete(client, "clicks") == 0
    assert delete(client, "clicks") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not (tmp_path / "data" / "clicks-0").exists()
    assert client.create("clicks") == 0
    [after] = metadata(client, "clicks").topics
    assert after.topic_id != before.topic_id
    assert client.fetch("clicks").high_watermark == 0


def test_a_topic_can_be_deleted_by_its_id(client: Client) -> None:
    [topic_id] = metadata(client, "clicks").topics
    request = DeleteTopicsRequest(topics=(DeleteTopic(topic_id=topic_id.topic_id),), timeout_ms=1)
    assert [client.ask(request).responses[0].error_code for _ in range(2)] == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert metadata(client).topics == ()


def test_topics_records_and_cluster_id_survive_a_restart(start_modern: StartModern, connect: Connect) -> None:
    broker = start_modern()
    client = connect(broker)
    client.create("clicks", 2)
    client.produce("clicks", batch(3))
    before = metadata(client)
    broker.stop()
    restarted_client = connect(start_modern())
    after = metadata(restarted_client)
    assert (after.topics, after.cluster_id) == (before.topics, before.cluster_id)
    assert values(restarted_client.fetch("clicks").records) == expected_values(3)


def test_a_directory_without_a_topic_is_renamed_when_the_topic_is_created(
    start_modern: StartModern, connect: Connect, tmp_path: Path
) -> None:
    """A deletion that a crash interrupted leaves such a directory."""
    stray = tmp_path / "data" / "clicks-0"
    stray.mkdir(parents=True)
    (stray / f"{7:020d}.log").touch()
    client = connect(start_modern())
    assert metadata(client).topics == ()
    assert client.create("clicks") == 0
    assert client.fetch("clicks").high_watermark == 0
    [renamed] = (tmp_path / "data").glob("clicks-0.*-stray")
    assert [path.name for path in renamed.iterdir()] == [f"{7:020d}.log"]


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"topics": {}}', '{"cluster_id": "x", "topics": {"a": 1}}'])
def test_a_damaged_topics_file_is_an_error_and_not_an_empty_file(
    start_modern: StartModern, tmp_path: Path, text: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "topics.json").write_text(text)
    with pytest.raises(Corrupt):
        start_modern()
