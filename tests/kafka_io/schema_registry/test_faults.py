"""A registry that is busy, slow, broken or hostile: what is retried, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_io.errors import (
    AuthenticationFailed,
    ConnectionLost,
    Corrupt,
    DeadlineExceeded,
    KafkaIOError,
    SchemaRegistryError,
    SchemaRegistryUnavailable,
    Throttled,
    Where,
)
from kafka_io.schema_registry import client as client_module
from kafka_io.testing.schema_registry.faults import Fault
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fakes.registry_faults import (
    answers,
    drips,
    ends_after,
    pads,
    sends,
    sends_raw,
    stalls,
)
from tests.kafka_io.schema_registry.conftest import MakeClient

TEXT = '"string"'
HEAD = b"HTTP/1.1 200 OK\r\n"
SHORT_S = 0.3


@pytest.fixture(autouse=True)
def _registered(embedded: EmbeddedSchemaRegistry) -> None:
    assert embedded.register("orders-value", TEXT) == 1


@pytest.mark.parametrize("fault", [*map(answers, (408, 429, 500, 502, 503, 504)), ends_after(0), ends_after(-1)])
def test_a_passing_fault_is_retried(fault: Fault, embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    """An answer that ends early is retried, too (fault N30)."""
    embedded.inject(fault, times=2)
    client = client_of(embedded.url)
    assert client.registry.schema(1).text == TEXT
    assert (len(client.pauses), len(embedded.requests)) == (2, 3)


def test_a_fault_that_remains_is_an_error_after_all_attempts(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    embedded.inject(answers(503, 50301, "the leader\nis unknown"), times=None)
    with pytest.raises(SchemaRegistryUnavailable, match=r"50301: the leader\?is unknown \[") as raised:
        client_of(embedded.url).registry.schema(1)
    assert (raised.value.where, raised.value.retriable) == (Where(registry="main", schema_id=1), True)
    assert len(embedded.requests) == 3


def test_a_registry_that_is_down_is_an_error_after_all_attempts(client_of: MakeClient) -> None:
    with EmbeddedSchemaRegistry() as stopped:
        url = stopped.url
    client = client_of(url)
    with pytest.raises(KafkaIOError, match="cannot connect") as raised:
        client.registry.subjects()
    assert (raised.value.retriable, raised.value.where, len(client.pauses)) == (True, Where(registry="main"), 2)


def test_a_registry_that_asks_to_wait_is_obeyed(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    embedded.inject(answers(429, Retry_After="7"))
    client = client_of(embedded.url)
    assert client.registry.schema(1).text == TEXT
    retry_pause_s, asked_s = client.pauses
    assert retry_pause_s < 1
    assert 5 < asked_s <= 7


@pytest.mark.parametrize("seconds", ["-1", "1e9", "Sun, 22 Nov 2026 23:00:00 GMT", "9" * 5000])
def test_a_wait_that_is_no_number_of_seconds_is_not_used(
    seconds: str, embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    embedded.inject(answers(429, Retry_After=seconds))
    client = client_of(embedded.url)
    assert client.registry.schema(1).text == TEXT
    assert len(client.pauses) == 1


def test_a_registry_that_asks_to_wait_too_long_is_an_error(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    embedded.inject(answers(429, Retry_After="200"), times=None)
    client = client_of(embedded.url, attempts=9)
    with pytest.raises(Throttled, match="asks to wait for 400 s, more than the 300 s"):
        client.registry.schema(1)
    assert len(embedded.requests) == 2


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (answers(400), SchemaRegistryError),
        (answers(401), AuthenticationFailed),
        (answers(403, 40301), SchemaRegistryError),
        (answers(422, 42201), SchemaRegistryError),
        (answers(301, Location="http://elsewhere/"), SchemaRegistryError),
        (answers(404, 404), SchemaRegistryError),
        (sends(b"<html>no</html>", status=404), SchemaRegistryError),
        (sends(b"<html>log in here</html>"), SchemaRegistryError),
        (sends(b"[" * 100_000), SchemaRegistryError),
        (sends(b'{"schema": 7}'), SchemaRegistryError),
        (sends(b'{"id": 1}'), SchemaRegistryError),
        (sends(b'{"schema": "\\ud800"}'), SchemaRegistryError),
        (sends(b'{"schema": "\xff"}'), SchemaRegistryError),
        (sends_raw(b"SSH-2.0-OpenSSH_9.6\r\n"), Corrupt),
        (sends_raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), Corrupt),
        (sends_raw(HEAD + b"X: y\r\n" * 200 + b"\r\n"), Corrupt),
    ],
)
def test_a_fault_that_cannot_pass_is_not_retried(
    fault: Fault, kind: type[KafkaIOError], embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    embedded.inject(fault)
    client = client_of(embedded.url)
    with pytest.raises(kind) as raised:
        client.registry.schema(1)
    assert (raised.value.retriable, len(embedded.requests), client.pauses) == (False, 1, [])
    assert raised.value.where == Where(registry="main", schema_id=1)


@pytest.mark.parametrize("fault", [stalls, drips(0.05)], ids=["silent", "byte by byte"])
def test_one_deadline_covers_the_whole_answer(
    fault: Fault, embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:  # faults W04, W05
    embedded.inject(fault)
    with pytest.raises(DeadlineExceeded):
        client_of(embedded.url, attempts=1, timeout_s=SHORT_S).registry.schema(1)


@pytest.mark.parametrize(
    "fault",
    [
        pads(1001),
        sends_raw(HEAD + b"Content-Length: 999999999999\r\n\r\n"),
        sends_raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 1001),
        sends_raw(HEAD + b"\r\n" + b" " * 1001),
    ],
    ids=["padded", "claimed", "in chunks", "without length"],
)
def test_an_answer_that_is_too_large_is_refused(
    fault: Fault, embedded: EmbeddedSchemaRegistry, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault H10
    monkeypatch.setattr(client_module, "MAX_ANSWER_BYTES", 1000)
    embedded.inject(fault)
    with pytest.raises(Corrupt, match="larger than 1,000 bytes"):
        client_of(embedded.url).registry.schema(1)


@pytest.mark.parametrize(
    "fault",
    [
        pads(1000),
        sends_raw(HEAD + b'Transfer-Encoding: chunked\r\n\r\n7\r\n{"schem\r\n8\r\na": "x"}\r\n0\r\n\r\n'),
        sends_raw(HEAD + b'\r\n{"schema": "x"}'),
        sends_raw(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b'Content-Length: 15\r\n\r\n{"schema": "x"}'),
    ],
    ids=["padded", "in chunks", "without length", "with an interim answer"],
)
def test_every_form_of_http_is_read(fault: Fault, embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    embedded.inject(fault)
    assert client_of(embedded.url).registry.schema(1).text in {TEXT, "x"}


def referring(*references: tuple[str, str, int]) -> Any:
    """An answer about a version that refers to others."""
    named = [dict(zip(("name", "subject", "version"), reference, strict=True)) for reference in references]
    return sends(json.dumps({"schema": "x", "subject": "s", "id": 9, "version": 1, "references": named}).encode())


def test_a_cycle_of_references_is_refused(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:  # fault H10
    embedded.inject(referring(("A", "a", 1)), path="/schemas/ids/.*")
    embedded.inject(referring(("B", "b", 1)), path="/subjects/a/.*")
    embedded.inject(referring(("A", "a", 1)), path="/subjects/b/.*")
    with pytest.raises(SchemaRegistryError, match="a cycle through version 1 of a"):
        client_of(embedded.url).registry.schema(1)


class Endless:
    """A registry that answers each version with a reference to another one."""

    def __init__(self, references: int) -> None:
        self.asked = 0
        self._references = references

    def __call__(self, reply: Any, client: Any) -> None:
        """Answer with new references."""
        self.asked += 1
        referring(*((f"{self.asked}.{n}", f"{self.asked}.{n}", 1) for n in range(self._references)))(reply, client)


@pytest.mark.parametrize("references", [1, 60])
def test_references_without_end_are_refused(
    references: int, embedded: EmbeddedSchemaRegistry, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault H10
    monkeypatch.setattr("kafka_io.schema_registry.references.MAX_DEPTH", 20)
    monkeypatch.setattr("kafka_io.schema_registry.references.MAX_REFERENCES", 30)
    endless = Endless(references)
    embedded.inject(endless, times=None)
    with pytest.raises(SchemaRegistryError, match="needs more than"):
        client_of(embedded.url).registry.schema(1)
    assert endless.asked <= 32


def test_references_that_are_too_large_in_sum_are_refused(
    embedded: EmbeddedSchemaRegistry, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault H10
    monkeypatch.setattr("kafka_io.schema_registry.references.MAX_SCHEMA_LENGTH", 14)
    embedded.register("unit", TEXT)
    schema_id = embedded.register("order", '"bytes"', references=[("Unit", "unit", 1)])
    registry = client_of(embedded.url).registry
    assert registry.schema(1).text == TEXT
    with pytest.raises(SchemaRegistryError, match="needs more than"):
        registry.schema(schema_id)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=80) | st.tuples(st.just(HEAD), st.binary(max_size=60)).map(b"".join))
def test_any_bytes_are_a_schema_or_an_error(
    data: bytes, embedded: EmbeddedSchemaRegistry, client_of: MakeClient
) -> None:
    embedded.inject(sends_raw(data))
    with pytest.raises(KafkaIOError):
        client_of(embedded.url, attempts=1).registry.schema(1)


def test_a_connection_that_ends_in_the_head_is_lost(embedded: EmbeddedSchemaRegistry, client_of: MakeClient) -> None:
    embedded.inject(ends_after(20))
    with pytest.raises(ConnectionLost):
        client_of(embedded.url, attempts=1).registry.schema(1)
