"""Kafka's own clients are the judge: the same bytes for the same message, in every version of every API."""

from collections.abc import Callable, Iterable
from functools import cache

import pytest

from kafka_io.errors import WireError
from kafka_io.wire.conversation import ClientConversation, VersionedRequest, received
from kafka_io.wire.primitives import WireReader
from tests.all_requests import REQUESTS
from tests.golden_messages import KINDS, SIDES, Golden, goldens
from tests.receiving import receive

# A test checks all examples of an API: one test for each example would take longer to collect than to run.
every_api = pytest.mark.parametrize("api", KINDS)
FLEXIBLE = [name for name, kind in KINDS.items() if kind.API.is_flexible(kind.API.versions[1])]


@cache
def examples(api: str) -> list[Golden]:
    """The full and the empty message of each version, requests and responses."""
    return list(goldens(api, "full", "empty"))


def full(api: str) -> list[Golden]:
    """The full messages of all versions; of versions with the same bytes, one."""
    messages = [golden for golden in examples(api) if golden.name == "full"]
    return list({(golden.side, golden.body): golden for golden in messages}.values())


def response_to(request: Golden) -> Golden:
    """The response of the same version that is as full."""
    wanted = ("response", request.version, request.name)
    (response,) = (
        golden for golden in examples(request.api.name) if (golden.side, golden.version, golden.name) == wanted
    )
    return response


def check_each(goldens: Iterable[Golden], check: Callable[[Golden], None]) -> None:
    """Run `check` on each example; a failure names the API, the side and the version of all that fail."""
    failures, checked = [], 0
    for golden in goldens:
        checked += 1
        try:
            check(golden)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - reported together, for all versions
            failures.append(f"{golden}: {type(error).__name__}: {error}")
    assert checked, "no example"
    assert not failures, f"{len(failures)} of {checked} examples fail:\n" + "\n".join(failures)


def test_there_is_an_example_of_every_version_of_every_api() -> None:
    found = {
        (golden.api.key, golden.side, golden.version)
        for api in KINDS
        for golden in examples(api)
        if golden.name == "full"
    }
    assert found == {
        (number, side, version)
        for number, kind in REQUESTS.items()
        for side in SIDES
        for version in range(kind.API.versions[0], kind.API.versions[1] + 1)
    }


@every_api
def test_we_write_what_kafka_writes(api: str) -> None:
    def check(golden: Golden) -> None:
        assert b"".join(golden.api.encode(golden.message, golden.version)) == golden.body

    check_each(examples(api), check)


@every_api
def test_we_read_what_kafka_wrote(api: str) -> None:
    check_each(examples(api), reads_as_its_message)


@pytest.mark.parametrize("api", FLEXIBLE)
def test_tags_that_nobody_knows_are_passed_over_in_every_struct(api: str) -> None:
    check_each(goldens(api, "unknown_tags"), reads_as_its_message)


def reads_as_its_message(golden: Golden) -> None:
    assert golden.api.decode(type(golden.message), WireReader(golden.body), golden.version) == golden.message


@every_api
def test_requests_and_answers_have_the_headers_that_kafka_writes(api: str) -> None:
    def check(request: Golden) -> None:
        response = response_to(request)
        client = ClientConversation("golden")
        assert client.send(VersionedRequest(request.message, request.version)) == request.frame
        taken = received(memoryview(request.frame)[4:], REQUESTS)
        assert (taken.request, taken.version, taken.client_id) == (request.message, request.version, "golden")
        assert taken.answered(response.message) == response.frame
        assert list(receive(client, response.frame)) == [response.message]

    check_each((golden for golden in examples(api) if golden.side == "request"), check)


@every_api
def test_a_message_that_is_cut_anywhere_is_refused(api: str) -> None:  # fault W03
    def check(golden: Golden) -> None:
        for size in range(len(golden.body)):
            with pytest.raises(WireError):
                golden.api.decode(type(golden.message), WireReader(golden.body[:size]), golden.version)

    check_each(full(api), check)


@every_api
def test_a_bit_that_flips_gives_a_message_that_can_be_written_or_a_typed_error(api: str) -> None:  # faults W09, W10
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
