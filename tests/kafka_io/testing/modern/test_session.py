"""The sessions of clients: the supported versions, and the requests that close a connection."""

# faults W06, W07, W09, W15
import struct
from pathlib import Path

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.handshake import ApiVersionsRequest
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import Generation
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.wire.conversation import ClientConversation, VersionedRequest
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import Client
from tests.receiving import receive

FIRST = {0: 13, 1: 18, 3: 13, 18: 4}


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_api_versions_lists_the_supported_versions(client: Client, version: int) -> None:
    answer = client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), version)
    supported = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert answer.error_code == 0
    assert {key: supported[key][1] for key in FIRST} == FIRST
    assert not {17, 36} & supported.keys(), "the broker has no login"


def test_a_newer_client_gets_the_supported_versions_in_version_0(client: Client) -> None:
    client.socket.sendall(frame(struct.pack(">hhih", 18, 99, 7, -1) + b"fields of a later version"))
    size, correlation, code, count = struct.unpack(">iihi", client.socket.recv(14))
    assert (correlation, code, size) == (7, ErrorCode.UNSUPPORTED_VERSION, 10 + 6 * count)
    client.socket.recv(10_000)
    assert client.ask(MetadataRequest(topics=None)).topics


INVALID_REQUESTS = {
    "an unknown API": frame(struct.pack(">hhih", 999, 0, 1, -1)),
    "an unknown version": frame(struct.pack(">hhih", 3, 99, 1, -1)),
    "a negative version": frame(struct.pack(">hhih", 3, -1, 1, -1)),
    "a frame of no bytes": frame(b""),
    "a negative size": struct.pack(">i", -5),
    "a size of 2 GiB": struct.pack(">i", 2**31 - 1),
    "a count beyond the frame": frame(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1)),
    "a cut request": frame(struct.pack(">hhihh", 3, 1, 1, -1, 0)),
    "a name that is not UTF-8": frame(struct.pack(">hhihih", 3, 1, 1, -1, 1, 2) + b"\xff\xff"),
}


@pytest.mark.parametrize("name", INVALID_REQUESTS)
def test_an_invalid_request_closes_only_its_own_connection(
    start_modern: StartModern, connect: Connect, name: str
) -> None:
    broker = start_modern()
    neighbour, client = connect(broker), connect(broker)
    neighbour.create("clicks")
    client.socket.sendall(INVALID_REQUESTS[name])
    assert client.is_closed()
    assert len(neighbour.ask(MetadataRequest(topics=None)).topics) == 1


def test_bytes_after_a_request_are_ignored(client: Client) -> None:
    """Clients based on librdkafka send them with Metadata v9 and later; see kafka_io/wire/conversation.py."""
    body = struct.pack(">hhih", 3, 13, 7, -1) + bytes(7)
    client.socket.sendall(frame(body))
    size, correlation = struct.unpack(">ii", client.socket.recv(8))
    assert (correlation, len(client.socket.recv(10_000))) == (7, size - 4)


def test_requests_can_arrive_byte_by_byte_or_many_at_once(client: Client) -> None:
    conversation = ClientConversation("bytes")
    request = VersionedRequest(MetadataRequest(topics=None), 9)
    for byte in conversation.send(request):
        client.socket.sendall(bytes((byte,)))
    client.socket.sendall(conversation.send(request) + conversation.send(request))
    answers = 0
    while answers < 3:
        answers += len(list(receive(conversation, client.socket.recv(50))))


@pytest.mark.parametrize("request_", [ApiVersionsRequest(), ListGroupsRequest(), FetchRequest(topics=())])
def test_a_broker_of_0_8_closes_the_connection_on_unknown_requests(
    start_modern: StartModern, connect: Connect, request_: ApiVersionsRequest | ListGroupsRequest | FetchRequest
) -> None:
    client = connect(start_modern(generation=Generation.V08))
    client.send(request_, 1 if isinstance(request_, FetchRequest) else 0)
    assert client.is_closed()


def test_a_modern_configuration_refuses_generation_0_7(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="BrokerConfig"):
        ModernBrokerConfig(broker_id=1, data_dir=tmp_path, generation=Generation.V07)
