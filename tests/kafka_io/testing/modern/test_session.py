"""What a connection bears with, and what closes it: that one, and no other."""

# faults W06, W07, W09, W15
import struct
from pathlib import Path

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.api_versions import ApiVersionsRequest
from kafka_io.messages.fetch import FetchRequest
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
def test_what_is_spoken_is_told_in_every_version(client: Client, version: int) -> None:
    answer = client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), version)
    spoken = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert answer.error_code == 0
    assert {key: spoken[key][1] for key in FIRST} == FIRST
    assert not {17, 36} & spoken.keys(), "no login here"


def test_a_newer_client_is_told_so_in_the_plainest_version(client: Client) -> None:
    client.socket.sendall(frame(struct.pack(">hhih", 18, 99, 7, -1) + b"what only the future knows"))
    size, correlation, code, count = struct.unpack(">iihi", client.socket.recv(14))
    assert (correlation, code, size) == (7, ErrorCode.UNSUPPORTED_VERSION, 10 + 6 * count)
    client.socket.recv(10_000)
    assert client.ask(MetadataRequest(topics=None)).topics


NONSENSE = {
    "an unknown API": frame(struct.pack(">hhih", 999, 0, 1, -1)),
    "an unknown version": frame(struct.pack(">hhih", 3, 99, 1, -1)),
    "a negative version": frame(struct.pack(">hhih", 3, -1, 1, -1)),
    "a frame of no bytes": frame(b""),
    "a negative size": struct.pack(">i", -5),
    "a size beyond all measure": struct.pack(">i", 2**31 - 1),
    "a count beyond the frame": frame(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1)),
    "a cut request": frame(struct.pack(">hhihh", 3, 1, 1, -1, 0)),
    "a name that is not UTF-8": frame(struct.pack(">hhihih", 3, 1, 1, -1, 1, 2) + b"\xff\xff"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_closes_its_own_connection_only(start_modern: StartModern, connect: Connect, name: str) -> None:
    broker = start_modern()
    neighbour, client = connect(broker), connect(broker)
    neighbour.create("clicks")
    client.socket.sendall(NONSENSE[name])
    assert client.is_closed()
    assert len(neighbour.ask(MetadataRequest(topics=None)).topics) == 1


def test_bytes_behind_a_request_are_let_by(client: Client) -> None:
    """As librdkafka sends them with Metadata v9 and later; kafka_io.wire.conversation says why."""
    body = struct.pack(">hhih", 3, 13, 7, -1) + bytes(7)
    client.socket.sendall(frame(body))
    size, correlation = struct.unpack(">ii", client.socket.recv(8))
    assert (correlation, len(client.socket.recv(10_000))) == (7, size - 4)


def test_a_request_may_come_byte_by_byte_and_many_in_one(client: Client) -> None:
    conversation = ClientConversation("bytes")
    request = VersionedRequest(MetadataRequest(topics=None), 9)
    for byte in conversation.send(request):
        client.socket.sendall(bytes((byte,)))
    client.socket.sendall(conversation.send(request) + conversation.send(request))
    answers = 0
    while answers < 3:
        answers += len(list(receive(conversation, client.socket.recv(50))))


@pytest.mark.parametrize("request_", [ApiVersionsRequest(), ListGroupsRequest(), FetchRequest(topics=())])
def test_an_old_broker_closes_on_what_it_does_not_know(
    start_modern: StartModern, connect: Connect, request_: ApiVersionsRequest | ListGroupsRequest | FetchRequest
) -> None:
    client = connect(start_modern(generation=Generation.V08))
    client.send(request_, 1 if isinstance(request_, FetchRequest) else 0)
    assert client.is_closed()


def test_a_broker_of_0_7_is_another_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="BrokerConfig"):
        ModernBrokerConfig(broker_id=1, data_dir=tmp_path, generation=Generation.V07)
