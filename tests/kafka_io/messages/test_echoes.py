"""An answer that names something else than its request is never taken for the answer (fault P10)."""

from dataclasses import replace
from uuid import UUID

import pytest

from kafka_io.errors import Corrupt
from kafka_io.messages.echoes import check_complete_echo, check_echo
from kafka_io.messages.metadata import MetadataPartition, MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka_io.messages.metadata import MetadataTopic as Topic
from kafka_io.wire.conversation import ClientConversation, VersionedRequest
from tests.golden_messages import KINDS, goldens
from tests.receiving import receive

# Answers that name neither topics nor groups nor keys, and requests that only tests send.
NAMES_NOTHING = {
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "JoinGroup",
    "SyncGroup",
    "LeaveGroup",
    "Heartbeat",
    "ListGroups",
    "InitProducerId",
    "AddOffsetsToTxn",
    "EndTxn",
}
ONLY_OF_TESTS = {"CreateTopics", "DeleteTopics", "DeleteRecords", "DescribeCluster"}
UNNAMED = {("FindCoordinator", version) for version in range(4)} | {
    ("AddPartitionsToTxn", 4),
    ("AddPartitionsToTxn", 5),
}


@pytest.mark.parametrize("api", sorted(KINDS.keys() - NAMES_NOTHING - ONLY_OF_TESTS))
def test_an_answer_that_names_something_else_ends_the_conversation(api: str) -> None:
    """The examples that Kafka's own classes wrote have other names in the answer than in the request."""
    examples = {(golden.side, golden.version): golden for golden in goldens(api, "full")}
    for (side, version), golden in examples.items():
        if side == "request" and (api, version) not in UNNAMED:
            client = ClientConversation("golden")
            client.send(VersionedRequest(golden.message, version))
            with pytest.raises(Corrupt, match=r"the broker (answered|did not answer) for"):
                list(receive(client, examples["response", version].frame))


@pytest.mark.parametrize(("answered", "match"), [
    ([("other", 0)], "for other 0, which was not requested"),
    ([("clicks", 7)], "for clicks 7, which was not requested"),
    ([("clicks", 0), ("clicks", 0)], "twice for clicks 0"),
])  # fmt: skip
def test_an_answer_names_only_what_was_requested_and_nothing_twice(answered: list[tuple[str, int]], match: str) -> None:
    with pytest.raises(Corrupt, match=match):
        check_echo([("clicks", 0), ("clicks", 1)], answered)


def test_an_answer_may_leave_something_out_unless_a_missing_result_would_pass_for_success() -> None:
    check_echo([("clicks", 0), ("clicks", 1)], [("clicks", 1)])
    with pytest.raises(Corrupt, match="did not answer for clicks 0"):
        check_complete_echo([("clicks", 0), ("clicks", 1)], [("clicks", 1)])


class CountedName(str):
    """A name that counts how often it is hashed."""

    __slots__ = ()
    hashed = 0

    def __hash__(self) -> int:
        CountedName.hashed += 1
        return super().__hash__()


def test_the_time_for_an_answer_that_must_be_complete_is_linear() -> None:
    names = [(CountedName(number),) for number in range(500)]
    check_complete_echo(names, names)
    assert CountedName.hashed <= 10 * len(names)


ROW = MetadataPartition(error_code=0, partition_index=0, leader_id=0, replica_nodes=(), isr_nodes=())
ONE = Topic(error_code=0, name="clicks", topic_id=UUID(int=1), partitions=(ROW,))


@pytest.mark.parametrize("topics", [
    (ONE, ONE),
    (ONE, replace(ONE, name="views")),
    (replace(ONE, partitions=(ROW, ROW)),),
], ids=["a topic twice", "two topics with one id", "a partition twice"])  # fmt: skip
def test_metadata_in_which_two_things_have_one_name_is_refused(topics: tuple[Topic, ...]) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="clicks"), MetadataRequestTopic(name="views")))
    with pytest.raises(Corrupt, match="twice"):
        request.check_answer(MetadataResponse(brokers=(), topics=topics), 12)
