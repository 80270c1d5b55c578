"""Kafka's own clients are the judge: the same bytes for the same message, in every version of every API."""

from collections.abc import Iterable

import pytest

from kafka_io.errors import WireError
from kafka_io.messages.requests import REQUESTS
from kafka_io.wire.conversation import ClientConversation, Versioned, received
from kafka_io.wire.primitives import Reader
from tests.golden_messages import SIDES, Golden, goldens

EXAMPLES = list(goldens("full", "empty"))
FULL = list(goldens("full"))
UNKNOWN = list(goldens("unknown_tags"))


def layouts(examples: Iterable[Golden]) -> list[Golden]:
    """One of all versions that have the same bytes."""
    return list({(golden.api.name, golden.side, golden.body): golden for golden in examples}.values())


def answer_to(asked: Golden) -> Golden:
    """The answer of the same version and fullness."""
    (answer,) = (
        each
        for each in EXAMPLES
        if (each.api, each.side, each.version, each.name) == (asked.api, "response", asked.version, asked.name)
    )
    return answer


def test_there_is_an_example_of_every_version_of_every_api() -> None:
    found = {(golden.api.key, golden.side, golden.version) for golden in FULL}
    assert found == {
        (number, side, version)
        for number, kind in REQUESTS.items()
        for side in SIDES
        for version in range(kind.API.versions[0], kind.API.versions[1] + 1)
    }


@pytest.mark.parametrize("golden", EXAMPLES, ids=str)
def test_we_write_what_kafka_writes(golden: Golden) -> None:
    assert b"".join(golden.api.encode(golden.message, golden.version)) == golden.body


@pytest.mark.parametrize("golden", EXAMPLES, ids=str)
def test_we_read_what_kafka_wrote(golden: Golden) -> None:
    assert golden.api.decode(type(golden.message), Reader(golden.body), golden.version) == golden.message


@pytest.mark.parametrize("golden", UNKNOWN, ids=str)
def test_tags_that_nobody_knows_are_passed_over_in_every_struct(golden: Golden) -> None:
    assert golden.api.decode(type(golden.message), Reader(golden.body), golden.version) == golden.message


@pytest.mark.parametrize("asked", [each for each in EXAMPLES if each.side == "request"], ids=str)
def test_requests_and_answers_have_the_headers_that_kafka_writes(asked: Golden) -> None:
    answer = answer_to(asked)
    client = ClientConversation("golden")
    assert client.send(Versioned(asked.message, asked.version)) == asked.frame
    taken = received(memoryview(asked.frame)[4:], REQUESTS)
    assert (taken.request, taken.version, taken.client_id) == (asked.message, asked.version, "golden")
    assert taken.answered(answer.message) == answer.frame
    assert list(client.receive(answer.frame)) == [answer.message]


@pytest.mark.parametrize("golden", layouts(FULL), ids=str)
def test_a_message_that_is_cut_anywhere_is_refused(golden: Golden) -> None:  # W03
    for size in range(len(golden.body)):
        with pytest.raises(WireError):
            golden.api.decode(type(golden.message), Reader(golden.body[:size]), golden.version)


@pytest.mark.parametrize("golden", layouts(FULL), ids=str)
def test_a_bit_that_flips_gives_a_message_that_can_be_written_or_a_typed_error(golden: Golden) -> None:  # W09, W10
    for place in range(len(golden.body)):
        for bit in (7, place % 7):
            body = bytearray(golden.body)
            body[place] ^= 1 << bit
            try:
                other = golden.api.decode(type(golden.message), Reader(body), golden.version)
            except WireError:
                continue
            written = b"".join(golden.api.encode(other, golden.version))
            assert golden.api.decode(type(other), Reader(written), golden.version) == other
