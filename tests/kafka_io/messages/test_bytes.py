"""Messages have the bytes that Kafka's own clients write, in every version of every API."""

from collections.abc import Callable, Iterable
from functools import cache
from unittest.mock import patch

import pytest

from kafka_io.errors import WireError
from kafka_io.wire.conversation import ClientConversation, VersionedRequest, received
from kafka_io.wire.primitives import WireReader
from tests.all_requests import REQUESTS
from tests.golden_messages import KINDS, SIDES, Golden, goldens
from tests.receiving import receive

# Each test checks all examples of an API: a test per example would take longer to collect than to run.
every_api = pytest.mark.parametrize("api", KINDS)
FLEXIBLE = [name for name, kind in KINDS.items() if kind.API.is_flexible(kind.API.versions[1])]


@cache
def examples(api: str) -> list[Golden]:
    """The full and the empty message of each version, requests and responses."""
    return list(goldens(api, "full", "empty"))


def full(api: str) -> list[Golden]:
    """The full messages of all versions, without versions that have the same bytes as another one."""
    messages = [golden for golden in examples(api) if golden.name == "full"]
    return list({(golden.side, golden.body): golden for golden in messages}.values())


def response_to(request: Golden) -> Golden:
    """The response with the same version and the same kind of example."""
    wanted = ("response", request.version, request.name)
    (response,) = (
        golden for golden in examples(request.api.name) if (golden.side, golden.version, golden.name) == wanted
    )
    return response


def check_each(goldens: Iterable[Golden], check: Callable[[Golden], None]) -> None:
    """Run `check` on each example. A failure names the API, the side and the version of all failed examples."""
    failures, checked = [], 0
    for golden in goldens:
        checked += 1
        try:
            check(golden)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all versions are reported together
            failures.append(f"{golden}: {type(error).__name__}: {error}")
    assert checked, "no example"
    assert not failures, f"{len(failures)} of {checked} examples fail:\n" + "\n".join(failures)


def test_every_version_of_every_api_has_an_example() -> None:
    examples_of_full = {
        (golden.api.key, golden.side, golden.version)
        for api in KINDS
        for golden in examples(api)
        if golden.name == "full"
    }
    assert examples_of_full == {
        (number, side, version)
        for number, kind in REQUESTS.items()
        for side in SIDES
        for version in range(kind.API.versions[0], kind.API.versions[1] + 1)
    }


@every_api
def test_this_client_writes_the_bytes_that_kafka_writes(api: str) -> None:
    def check(golden: Golden) -> None:
        assert b"".join(golden.api.encode(golden.message, golden.version)) == golden.body

    check_each(examples(api), check)


@every_api
def test_this_client_reads_the_bytes_that_kafka_wrote(api: str) -> None:
    check_each(examples(api), reads_as_its_message)


@pytest.mark.parametrize("api", FLEXIBLE)
def test_unknown_tags_are_skipped_in_every_struct(api: str) -> None:
    check_each(goldens(api, "unknown_tags"), reads_as_its_message)


def reads_as_its_message(golden: Golden) -> None:
    assert golden.api.decode(type(golden.message), WireReader(golden.body), golden.version) == golden.message


@every_api
def test_requests_and_answers_have_the_headers_of_kafka(api: str) -> None:
    def check(request: Golden) -> None:
        response = response_to(request)
        client = ClientConversation("golden")
        assert client.send(VersionedRequest(request.message, request.version)) == request.frame
        received_request = received(memoryview(request.frame)[4:], REQUESTS)
        assert (received_request.request, received_request.version, received_request.client_id) == (
            request.message,
            request.version,
            "golden",
        )
        assert received_request.answered(response.message) == response.frame
        with patch.object(KINDS[api], "check_answer"):  # the examples name other topics in the answer
            assert list(receive(client, response.frame)) == [response.message]

    check_each((golden for golden in examples(api) if golden.side == "request"), check)


@every_api
def test_a_truncated_message_is_refused(api: str) -> None:  # fault W03
    def check(golden: Golden) -> None:
        for size in range(len(golden.body)):
            with pytest.raises(WireError):
                golden.api.decode(type(golden.message), WireReader(golden.body[:size]), golden.version)

    check_each(full(api), check)


@every_api
def test_a_flipped_bit_gives_a_valid_message_or_a_wire_error(api: str) -> None:  # faults W09, W10
    def check(golden: Golden) -> None:
        for place in range(len(golden.body)):
            for bit in (7, place % 7):
                body = bytearray(golden.body)
                body[place] ^= 1 << bit
                try:
                    other = golden.api.decode(type(golden.message), WireReader(body), golden.version)
                except WireError:
                    continue
                written = b"".join(golden.api.encode(other, golden.version))
                assert golden.api.decode(type(other), WireReader(written), golden.version) == other

    check_each(full(api), check)
