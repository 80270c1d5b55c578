"""Avro values whose schema is in a file of the settings become its columns."""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_io.values.avro.fingerprint import fingerprint
from kafka_io.values.avro.schema import parse_avro
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.topic_schema import topic_schema
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.schemas.test_schema_headers import Headers
from tests.pipelines.schemas.test_schema_headers import log_of as log_with_headers

# fault F14


def click(*more: dict[str, Any]) -> str:
    fields = [{"name": "id", "type": "long", "doc": "The number."}, {"name": "page", "type": "string"}, *more]
    return json.dumps({"type": "record", "name": "shop.Click", "fields": fields})


CLICK = click()
WIDER = click({"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}})
GLUE, AZURE = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63", "0123456789abcdef0123456789abcdef"
PREFIXES = {
    "single_object": b"\xc3\1" + fingerprint(parse_avro(CLICK)),
    f"glue:{GLUE}": b"\3\0" + uuid.UUID(GLUE).bytes,
    f"azure:{AZURE}": b"\0\0\0\0" + AZURE.encode(),
}
BODIES: Sequence[bytes] = (b"\x02\2a", b"\x04\2b", b"\x06")


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    file = tmp_path / "click.avsc"
    file.write_text(CLICK)
    fake.logs = {0: log_of([BODIES[0], None, *BODIES[1:]])}
    with fake:
        format_ = {"format": "avro", "avro_file": str(file), "max_bad_share": 1}
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)


def test_plain_values_become_the_columns_of_a_file_and_grow_with_it(topic: TypedTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 4, 1)
    assert topic.deep().problems == ()
    Path(topic.format_["avro_file"]).write_text(WIDER)
    append(topic.fake.logs[0], [b"\x08\2c\x02"])
    load = topic.load()
    assert (load.error, load.rows, load.bad_records, load.files) == (None, 1, 0, 1)
    rows = topic.rows("id", "page", "at", "_error", "_raw", "_tombstone")
    assert [(row["id"], row["page"]) for row in rows] == [(1, "a"), (None, None), (2, "b"), (None, None), (4, "c")]
    assert [row["at"] and row["at"].timestamp() for row in rows] == [None, None, None, None, 0.001]
    assert (rows[1]["_tombstone"], rows[3]["_raw"]) == (True, b"\x06")
    assert rows[3]["_error"] == "page: a number is not a valid int or long (byte 1)"
    shown = topic_schema(topic.table, topic.settings.format_of("clicks"))
    assert [column.comment for column in shown.columns if column.name == "id"] == ["The number."]


@pytest.mark.parametrize("frame", PREFIXES)
def test_values_with_a_frame_decode_after_the_settings_name_it(topic: TypedTopic, frame: str) -> None:
    topic.fake.logs = {0: log_of([PREFIXES[frame] + body for body in BODIES[:2]])}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 2)
    assert all(row["_error"].endswith("does, see `avro_frame`") for row in topic.rows("_error"))
    topic.format_ = {**topic.format_, "avro_frame": frame}
    append(topic.fake.logs[0], [PREFIXES[frame] + BODIES[0], BODIES[0]])
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 1)
    format_, registries = topic.settings.format_of("clicks"), partial(open_schema_registry, topic.settings)
    result = redecode(RedecodeRequest(table=topic.table, format=format_, open_registry=registries, run="again"))
    assert (result.failure, result.decoded) == (None, 2)
    assert [row["id"] for row in topic.rows("id")] == [1, 2, 1, None]
    assert topic.deep().problems == ()


def test_values_with_the_content_type_of_azure_are_plain(topic: TypedTopic) -> None:
    headers: Headers = [("content-type", b"avro/binary+" + AZURE.encode())]
    topic.fake.logs = {0: log_with_headers([(BODIES[0], headers)])}
    load = topic.load()
    assert (load.error, load.bad_records, topic.rows("id")) == (None, 0, [{"id": 1}])


def test_the_id_in_the_content_type_of_azure_is_that_of_the_settings(topic: TypedTopic) -> None:
    topic.format_ = {**topic.format_, "avro_frame": f"azure:{AZURE}"}
    own: Headers = [("content-type", b"avro/binary+" + AZURE.encode())]
    other: Headers = [("content-type", b"avro/binary+" + 32 * b"f")]
    old = b"\0\0\0\0" + AZURE.encode() + BODIES[1]
    records: list[tuple[bytes | None, Headers]] = [
        (BODIES[0], own),
        (BODIES[0], other),
        (None, own),
        (old, []),
        (BODIES[0], [("content-type", b"avro/binary")]),
    ]
    topic.fake.logs = {0: log_with_headers(records)}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 2)
    rows = topic.rows("id", "_error", "_raw")
    assert [row["id"] for row in rows] == [1, None, None, 2, None]
    assert (rows[1]["_error"], rows[1]["_raw"]) == (
        f"the value has the id {32 * 'f'}, and the schema of `avro_file` has {AZURE}",
        BODIES[0],
    )
    assert "the value is not a value of Azure's registry" in rows[4]["_error"]
    assert topic.deep().problems == ()


def test_the_id_in_the_content_type_is_stored_although_headers_are_left_out(topic: TypedTopic) -> None:  # fault F14
    """Otherwise a redecode could not decode the value."""
    other = 32 * "f"
    topic.format_ = {**topic.format_, "avro_frame": f"azure:{other}", "load": {"headers": ["a"], "raw": "keep"}}
    own: Headers = [("a", b"1"), ("b", b"2"), ("content-type", b"avro/binary+" + AZURE.encode())]
    plain: Headers = [("content-type", b"application/json; of=zelda")]
    topic.fake.logs = {0: log_with_headers([(BODIES[0], own), (BODIES[1], plain)])}
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 2)
    stored = [row["_kafka_headers"] for row in topic.rows("_kafka_headers")]
    kept = [[(header["key"], header["value"]) for header in row or ()] for row in stored]
    assert kept == [[own[0], own[2]], []]
    topic.format_ = {**topic.format_, "avro_frame": f"azure:{AZURE}"}
    settings, registries = topic.settings.format_of("clicks"), partial(open_schema_registry, topic.settings)
    result = redecode(RedecodeRequest(table=topic.table, format=settings, open_registry=registries, run="again"))
    assert (result.failure, result.decoded) == (None, 1)
    assert [row["id"] for row in topic.rows("id")] == [1, None]
    assert topic.deep().problems == ()


def test_a_raw_table_becomes_one_with_the_columns_of_the_file(topic: TypedTopic) -> None:
    format_, topic.format_ = topic.format_, {}
    assert topic.load().error is None
    topic.format_ = format_
    settings, registries = topic.settings.format_of("clicks"), partial(open_schema_registry, topic.settings)
    request = RedecodeRequest(table=topic.table, format=settings, open_registry=registries, run="convert")
    assert convert_table(request).failure is None
    assert [row["id"] for row in topic.rows("id")] == [1, None, 2, None]


def test_a_file_that_cannot_be_used_fails_the_load_with_its_place(topic: TypedTopic) -> None:
    file = Path(topic.format_["avro_file"])
    lost = replace(topic, format_={**topic.format_, "avro_file": str(file.with_name("lost.avsc"))}).load()
    assert (lost.rows, "lost.avsc: no such file or directory" in str(lost.error)) == (0, True)
    for content, reason in (
        (b"{", f"{file}: the Avro schema is not JSON"),
        (b'"shop.Click"', f"{file}: the Avro schema uses the type shop.Click and does not declare it before"),
        (b"\xff", f"{file}: the text is not valid UTF-8"),
    ):
        file.write_bytes(content)
        load = topic.load()
        assert (load.rows, reason in str(load.error)) == (0, True)
