"""The APIs of groups, each in its first and its last version."""

from pathlib import Path

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Corrupt
from kafka_io.messages.describe_groups import DescribeGroupsRequest
from kafka_io.messages.find_coordinator import GROUP, TRANSACTION, FindCoordinatorRequest
from kafka_io.messages.heartbeat import HeartbeatRequest
from kafka_io.messages.join_group import JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse
from kafka_io.messages.leave_group import LeaveGroupRequest, LeavingMember
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka_io.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
)
from kafka_io.messages.sync_group import SyncGroupAssignment, SyncGroupRequest
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import Client


def join(client: Client, version: int, member_id: str = "", *, session_ms: int = 10_000) -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=session_ms,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupProtocol(name="range", metadata=b"m"),),
    )
    return client.ask(request, version)


def enter(client: Client, version: int) -> JoinGroupResponse:
    """Join as the only member, and assign everything to it."""
    joined = join(client, version)
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = join(client, version, joined.member_id)
    assignments = (SyncGroupAssignment(member_id=joined.member_id, assignment=b"all"),)
    request = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
    )
    assert client.ask(request, min(version, 5)).assignment == b"all"
    return joined


@pytest.mark.parametrize("version", [0, 3, 4, 9])
def test_a_member_joins_syncs_sends_heartbeats_and_leaves(client: Client, version: int) -> None:
    joined = enter(client, version)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, joined.member_id)
    assert [(member.member_id, bytes(member.metadata)) for member in joined.members] == [(joined.member_id, b"m")]
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert client.ask(heartbeat, min(version, 4)).error_code == 0
    leaving = (
        LeaveGroupRequest(group_id="g", members=(LeavingMember(member_id=joined.member_id),))
        if version >= 3
        else LeaveGroupRequest(group_id="g", member_id=joined.member_id)
    )
    answer = client.ask(leaving, min(version, 5))
    assert [answer.error_code, *(member.error_code for member in answer.members)] in ([0], [0, 0])
    assert client.ask(heartbeat, min(version, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_of_unknown_members_are_refused(client: Client) -> None:
    assert join(client, 9, session_ms=0).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert join(client, 9, "nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    heartbeat = HeartbeatRequest(group_id="unheard of", generation_id=1, member_id="x")
    assert client.ask(heartbeat).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    leaving = LeaveGroupRequest(group_id="g", member_id="x")
    assert client.ask(leaving, 0).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id="x", assignments=())
    assert client.ask(sync).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_are_listed_and_described(client: Client) -> None:
    joined = enter(client, 9)
    commit(client, 5, group="idle")
    groups = client.ask(ListGroupsRequest()).groups
    assert [(group.group_id, group.group_state, group.group_type) for group in groups] == [
        ("g", "Stable", "classic"),
        ("idle", "Empty", "classic"),
    ]
    assert [group.group_id for group in client.ask(ListGroupsRequest(states_filter=("stable",))).groups] == ["g"]
    joined_group, idle, unknown = client.ask(DescribeGroupsRequest(groups=("g", "idle", "none"))).groups
    assert (joined_group.group_state, joined_group.protocol_type, joined_group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    [member] = joined_group.members
    assert (member.member_id, bytes(member.member_assignment)) == (joined.member_id, b"all")
    assert (member.client_id, member.client_host) == ("tests", "127.0.0.1")
    assert (idle.group_state, unknown.group_state) == ("Empty", "Dead")


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_the_broker_coordinates_all_groups_and_transactions(
    start_modern: StartModern, connect: Connect, kind: int
) -> None:
    broker = start_modern(broker_id=4)
    client = connect(broker)
    coordinator = client.ask(FindCoordinatorRequest(key="g", key_type=kind), 3)
    assert (coordinator.error_code, coordinator.node_id, coordinator.port) == (0, 4, broker.port)
    coordinators = client.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=("g", "h")), 6).coordinators
    assert [(row.key, row.node_id, row.port) for row in coordinators] == [("g", 4, broker.port), ("h", 4, broker.port)]


def commit(
    client: Client, offset: int, *, group: str = "g", topic: str = "clicks", version: int = 9, text: str = "note"
) -> int:
    partition = OffsetCommitPartition(partition_index=0, committed_offset=offset, committed_metadata=text)
    request = OffsetCommitRequest(group_id=group, topics=(OffsetCommitTopic(name=topic, partitions=(partition,)),))
    return client.ask(request, version).topics[0].partitions[0].error_code


def committed(client: Client, version: int, *, group: str = "g") -> list[tuple[str, int, int, str | None]]:
    topics = (OffsetFetchTopic(name="clicks", partition_indexes=(0, 1)),)
    if version >= 8:
        request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=group, topics=topics),))
        topic_responses = client.ask(request, version).groups[0].topics
    else:
        topic_responses = client.ask(OffsetFetchRequest(group_id=group, topics=topics), version).topics
    return [
        (topic.name, partition.partition_index, partition.committed_offset, partition.metadata)
        for topic in topic_responses
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", [0, 1, 2, 5, 9])
def test_committed_offsets_survive_a_restart(start_modern: StartModern, connect: Connect, version: int) -> None:
    broker = start_modern()
    client = connect(broker)
    client.create("clicks")
    assert commit(client, 4, version=version) == 0
    assert commit(client, 7, version=version) == 0
    broker.stop()
    restarted_client = connect(start_modern())
    for fetch_version in (0, 1, 5, 8, 9):
        assert committed(restarted_client, fetch_version) == [("clicks", 0, 7, "note"), ("clicks", 1, -1, "")]


def test_a_request_without_topics_gets_all_offsets_of_the_group(client: Client) -> None:
    commit(client, 3)
    answer = client.ask(OffsetFetchRequest(group_id="g", topics=None), 7)
    assert [(topic.name, partition.committed_offset) for topic in answer.topics for partition in topic.partitions] == [
        ("clicks", 3)
    ]


def test_an_invalid_offset_commit_is_refused(client: Client) -> None:
    assert commit(client, 1, topic="nobody") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(client, 1, text="x" * 5000) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit(client, 1, group="") == ErrorCode.INVALID_GROUP_ID
    enter(client, 9)
    assert commit(client, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_damaged_offsets_file_is_an_error_and_not_an_empty_file(start_modern: StartModern, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "offsets.json").write_text('{"g": [1]}')
    with pytest.raises(Corrupt):
        start_modern()
