"""Both ends of a connection: complete and partial answers; an answer without its request ends the conversation."""

from dataclasses import replace
from typing import Any

import pytest

from kafka_io.errors import Corrupt, DeadlineExceeded, TooLarge, Truncated, Unsupported, WireError
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.handshake import ApiVersion, ApiVersionsRequest, ApiVersionsResponse, SaslHandshakeRequest
from kafka_io.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_io.messages.metadata import MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic
from kafka_io.wire.conversation import (
    API_VERSIONS_KEY,
    ApiVersionRanges,
    ClientConversation,
    VersionedRequest,
    received,
)
from kafka_io.wire.framing import framed
from kafka_io.wire.primitives import int16, int32
from kafka_io.wire.schema import KIB, MIB, Request
from tests.all_requests import REQUESTS
from tests.receiving import receive

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
PLAIN, FLEXIBLE = VersionedRequest(HEARTBEAT, 0), VersionedRequest(HEARTBEAT, 4)
CODES = (0, 27, 25)
ANSWERS = [HeartbeatResponse(error_code=code) for code in CODES]


def client_after(*requests: VersionedRequest[Any], max_answer_bytes: int = 100) -> ClientConversation:
    """A client that has sent all these requests."""
    client = ClientConversation("c", max_answer_bytes=max_answer_bytes)
    for versioned in requests:
        client.send(versioned)
    return client


def frames() -> bytes:
    """The answers of a broker to three plain heartbeats."""
    return b"".join(framed(int32(number), int16(code)) for number, code in enumerate(CODES))


def test_a_request_has_its_api_version_correlation_id_and_client_id() -> None:
    client = ClientConversation("me")
    sent = [client.send(PLAIN), client.send(FLEXIBLE)]
    body = "000167" + "00000001" + "00016d"
    compact = "0267" + "00000001" + "026d" + "00" + "00"  # the instance is null, and there are no tags
    assert [bytes(frame).hex()[8:] for frame in sent] == [
        "000c" + "0000" + "00000000" + "00026d65" + body,
        "000c" + "0004" + "00000001" + "00026d65" + "00" + compact,
    ]
    assert client.waiting == 2


def test_answers_are_complete_however_the_stream_is_cut() -> None:
    stream = frames()
    assert list(receive(client_after(PLAIN, PLAIN, PLAIN), stream)) == ANSWERS
    client = client_after(PLAIN, PLAIN, PLAIN)
    assert [answer for start in range(len(stream)) for answer in receive(client, stream[start : start + 1])] == ANSWERS
    for cut in range(len(stream)):
        client = client_after(PLAIN, PLAIN, PLAIN)
        assert [*receive(client, stream[:cut]), *receive(client, stream[cut:])] == ANSWERS


def test_an_incomplete_answer_waits_for_its_rest() -> None:
    client = client_after(PLAIN, PLAIN)
    first, second = framed(int32(0), int16(0)), framed(int32(1), int16(27))
    assert list(receive(client, first + second[:5])) == ANSWERS[:1]
    assert client.waiting == 1
    assert list(receive(client, second[5:])) == ANSWERS[1:2]
    assert client.waiting == 0


def test_bytes_are_received_directly_into_their_frame() -> None:
    client = client_after(PLAIN)
    stream = framed(int32(0), int16(27))
    for part in (stream[:4], stream[4:7]):
        client.space()[: len(part)] = part
        assert client.filled(len(part)) is None
    client.space()[:] = stream[7:]
    assert client.filled(3) == ANSWERS[1]


@pytest.mark.parametrize("correlation", [1, -1, 2**31 - 1])
def test_an_answer_to_another_request_ends_the_conversation(correlation: int) -> None:  # fault W08
    with pytest.raises(Corrupt, match=rf"correlation id {correlation}, expected 0 \(Heartbeat\)"):
        list(receive(client_after(PLAIN, PLAIN), framed(int32(correlation), int16(0))))


def test_an_answer_that_comes_twice_ends_the_conversation() -> None:  # fault W08
    answer = framed(int32(0), int16(0))
    with pytest.raises(Corrupt, match="correlation id 0, expected 1"):
        list(receive(client_after(PLAIN, PLAIN), answer * 2))


@pytest.mark.parametrize("requests", [[], [PLAIN]])
def test_bytes_without_a_request_are_refused(requests: list[VersionedRequest[HeartbeatResponse]]) -> None:  # fault W08
    with pytest.raises(Corrupt, match="without a request"):
        list(receive(client_after(*requests), framed(int32(0), int16(0)) * 2))


def test_correlation_ids_start_again_at_0_after_the_largest_int32() -> None:
    client = ClientConversation("c")
    client._next_id = 2**31 - 1
    client.send(PLAIN)
    client.send(PLAIN)
    stream = framed(int32(2**31 - 1), int16(0)) + framed(int32(0), int16(27))
    assert list(receive(client, stream)) == ANSWERS[:2]


# The limit of the client is for Fetch alone, whose answers are as large as its settings allow.
@pytest.mark.parametrize(("request_", "most"), [
    (FetchRequest(topics=()), 100_000),
    (ApiVersionsRequest(), 64 * KIB),
    (SaslHandshakeRequest(mechanism="PLAIN"), 64 * KIB),
    (HEARTBEAT, 16 * MIB),
    (MetadataRequest(topics=()), 32 * MIB),
])  # fmt: skip
def test_an_answer_above_the_limit_of_its_api_is_refused_before_memory_is_allocated(  # faults W06, H05
    request_: Request[Any], most: int
) -> None:
    for size in (most, most + 1, 2**31 - 1):
        client = client_after(VersionedRequest(request_, 0), max_answer_bytes=100_000)
        if size == most:
            assert list(receive(client, size.to_bytes(4, "big"))) == []
        else:
            with pytest.raises(TooLarge, match=f"{size} bytes is above the maximum of {most}"):
                list(receive(client, size.to_bytes(4, "big")))


def test_decoding_an_answer_ends_with_its_deadline() -> None:  # fault H02
    """The time is checked before each array, so that many small ones cannot take longer than one large one."""
    row = MetadataPartition(error_code=0, partition_index=0, leader_id=0, replica_nodes=(), isr_nodes=())
    rows = tuple(replace(row, partition_index=number) for number in range(9))
    topic = MetadataTopic(error_code=0, name="clicks", partitions=rows)
    request = VersionedRequest(MetadataRequest(topics=()), 0)
    body = MetadataRequest.API.encode(MetadataResponse(brokers=(), topics=(topic,)), 0)
    checks: list[None] = []

    def check_time() -> None:
        checks.append(None)
        if len(checks) == 7:
            raise DeadlineExceeded("too late")

    client = ClientConversation("c")
    client.send(request)
    frame = framed(int32(0), *body)
    client.space()[:] = frame[:4]
    assert client.filled(4, check_time) is None
    client.space()[:] = frame[4:]
    with pytest.raises(DeadlineExceeded, match="too late"):
        client.filled(len(frame) - 4, check_time)


@pytest.mark.parametrize("size", [-5, 0, 3])
def test_an_answer_that_is_too_small_for_a_correlation_id_is_refused(size: int) -> None:  # fault W07
    with pytest.raises(Corrupt):
        list(receive(client_after(PLAIN), size.to_bytes(4, "big", signed=True)))


@pytest.mark.parametrize("tags", ["00", "0105026162", "02" + "0000" + "0701ff"])
def test_tags_in_the_header_of_an_answer_are_skipped(tags: str) -> None:
    body = bytes.fromhex(tags) + int32(0) + int16(27) + b"\x00"
    assert list(receive(client_after(FLEXIBLE), framed(int32(0), body))) == [HeartbeatResponse(error_code=27)]


@pytest.mark.parametrize("tags", ["", "01", "0105", "010502", "ffffffff0f"])
def test_a_truncated_header_is_refused(tags: str) -> None:
    with pytest.raises(WireError):
        list(receive(client_after(FLEXIBLE), framed(int32(0), bytes.fromhex(tags))))


def test_a_request_that_its_version_cannot_express_is_neither_sent_nor_waited_for() -> None:
    client = ClientConversation("c")
    with pytest.raises(Unsupported, match="group_instance_id would be lost"):
        client.send(
            VersionedRequest(HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i"), 2)
        )
    assert client.waiting == 0
    assert client.send(PLAIN)[8:12] == int32(0)


def test_the_answer_to_api_versions_has_no_tags_in_its_header() -> None:
    answer = ApiVersionsResponse(error_code=0, api_keys=(ApiVersion(api_key=1, min_version=0, max_version=9),))
    client = ClientConversation("c")
    request = client.send(VersionedRequest(ApiVersionsRequest(), 3))
    sent = received(memoryview(request)[4:], REQUESTS).answered(answer)
    code, apis = "0000", "02" + "0001" + "0000" + "0009" + "00"
    assert bytes(sent)[4:].hex() == "00000000" + code + apis + "00000000" + "00"
    assert list(receive(client, sent)) == [answer]


def test_a_server_answers_with_the_version_and_the_correlation_id_of_the_request() -> None:
    for versioned in (PLAIN, FLEXIBLE):
        client = client_after(versioned)
        request = client.send(versioned)
        received_request = received(memoryview(request)[4:], REQUESTS)
        assert (
            received_request.request,
            received_request.correlation,
            received_request.client_id,
            received_request.version,
        ) == (HEARTBEAT, 1, "c", versioned.version)
        first = received(memoryview(ClientConversation("c").send(versioned))[4:], REQUESTS)
        stream = first.answered(ANSWERS[1]) + received_request.answered(ANSWERS[2])
        assert list(receive(client, stream)) == ANSWERS[1:]


def test_the_client_id_may_be_null() -> None:
    frame = int16(12) + int16(0) + int32(5) + int16(-1) + bytes.fromhex("0001670000000100016d")
    received_request = received(memoryview(frame), REQUESTS)
    assert (received_request.client_id, received_request.correlation, received_request.request) == (None, 5, HEARTBEAT)


@pytest.mark.parametrize(("key", "version"), [(999, 0), (-1, 0), (12, 99), (12, -1)])
def test_a_server_refuses_unsupported_apis_and_versions(key: int, version: int) -> None:
    with pytest.raises(Unsupported):
        received(memoryview(int16(key) + int16(version) + int32(0) + int16(-1) + b"\x00"), REQUESTS)


def test_a_truncated_request_is_refused() -> None:
    for versioned in (PLAIN, FLEXIBLE):
        frame = memoryview(ClientConversation("c").send(versioned))[4:]
        for size in range(len(frame)):
            with pytest.raises((Truncated, Corrupt)):
                received(frame[:size], REQUESTS)


API = HeartbeatRequest.API


@pytest.mark.parametrize(
    ("offered", "max_version", "version"),
    [((0, 4), None, 4), ((0, 2), None, 2), ((3, 9), None, 4), ((0, 4), 1, 1), ((4, 4), 9, 4)],
)
def test_the_newest_common_version_is_picked(offered: tuple[int, int], max_version: int | None, version: int) -> None:
    assert ApiVersionRanges({API.key: offered}).pick(API, max_version=max_version) == version


@pytest.mark.parametrize(("offered", "max_version"), [((5, 9), None), ((2, 4), 1)])
def test_without_a_common_version_the_error_names_both_ranges(
    offered: tuple[int, int], max_version: int | None
) -> None:
    with pytest.raises(Unsupported, match=f"v{offered[0]} to v{offered[1]}, this client v0 to v4"):
        ApiVersionRanges({API.key: offered}).pick(API, max_version=max_version)


def test_an_api_that_the_broker_does_not_support_is_an_error() -> None:
    with pytest.raises(Unsupported, match="does not support Heartbeat"):
        ApiVersionRanges({API_VERSIONS_KEY: (0, 4)}).pick(API)
