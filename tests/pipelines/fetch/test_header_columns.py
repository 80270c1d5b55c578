"""Headers become columns of text: a CloudEvent in binary mode is one row."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.topic_schema import topic_schema
from pipelines.verify.verify import verify
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic
from tests.pipelines.schemas.test_schema_headers import Headers, log_of

# fault F15

EVENT: Headers = [("ce_specversion", b"1.0"), ("ce_id", b"a1"), ("ce_type", b"shop.order"), ("content-type", b"x/y")]
RECORDS: Sequence[tuple[bytes | None, Headers]] = (
    (b'{"id": 7}', EVENT),
    (b'{"id": 8}', []),
    (b"{", [("ce_id", b"a3")]),
    (None, [("ce_id", b"a4")]),
    (b'{"id": 9}', [("ce_id", b"first"), ("ce_id", b"a5"), ("ce_type", b"\xff")]),
)
IDS, TYPES = "_kafka_header_ce_id", "_kafka_header_ce_type"
NAMES = ("ce_id", "ce_type")
CELLS = [("a1", "shop.order", 7), (None, None, 8), ("a3", None, None), ("a4", None, None), ("a5", None, 9)]


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of(RECORDS)}
    with fake:
        format_ = {"format": "json", "max_bad_share": 1, "header_columns": list(NAMES)}
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)


def cells(topic: TypedTopic) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in topic.rows(IDS, TYPES, "id")]


def request_of(topic: TypedTopic) -> RedecodeRequest:
    registries = partial(open_schema_registry, topic.settings)
    format_ = topic.settings.format_of("clicks")
    return RedecodeRequest(table=topic.table, format=format_, open_registry=registries, run="again")


def append(topic: TypedTopic, value: bytes, headers: Headers) -> None:
    log = topic.fake.logs[0]
    named = tuple((name.encode(), content) for name, content in headers)
    record = Record(offset=log.end, timestamp=1_700_000_000_000, key=None, value=value, headers=named)
    log.entries.append((log.end, record_batch([record])))
    log.end += 1


def test_headers_are_columns_also_of_tombstones_and_of_records_that_do_not_decode(topic: TypedTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 5, 1)
    assert cells(topic) == CELLS
    assert topic.deep().problems == ()
    assert verify(topic.table).proven
    assert topic.load().rows == 0
    shown = topic_schema(topic.table, topic.settings.format_of("clicks"))
    assert [(column.name, column.type, column.comment) for column in shown.columns[:2]] == [
        (IDS, "string", "the last header ce_id as text"),
        (TYPES, "string", "the last header ce_type as text"),
    ]


def test_the_columns_have_statistics_so_readers_skip_files(topic: TypedTopic) -> None:
    assert topic.load().error is None
    append(topic, b'{"id": 10}', [("ce_id", b"z9")])
    assert topic.load().error is None
    table = DeltaTable(topic.table.uri)
    files = table.get_add_actions(flatten=True)
    bounds = {
        (low, high)
        for low, high in zip(*(files.column(f"{bound}.{IDS}").to_pylist() for bound in ("min", "max")), strict=True)
    }
    assert bounds == {("a1", "a5"), ("z9", "z9")}
    dataset = table.to_pyarrow_dataset()
    assert dataset is not None
    with duckdb.connect() as database:
        database.register("clicks", dataset)
        assert database.sql(f"SELECT id FROM clicks WHERE {IDS} >= 'z'").fetchall() == [(10,)]


def test_the_columns_of_headers_come_before_many_fields_because_only_the_first_columns_have_statistics(
    topic: TypedTopic,
) -> None:
    wide = json.dumps({f"f{number}": number for number in range(60)}).encode()
    topic.fake.logs = {0: log_of([(wide, EVENT)])}
    assert topic.load().error is None
    [bounds] = DeltaTable(topic.table.uri).get_add_actions(flatten=True).column(f"max.{TYPES}").to_pylist()
    assert bounds == "shop.order"


def test_a_table_gets_the_columns_with_its_next_rows_and_a_replay_fills_them(topic: TypedTopic) -> None:
    format_ = topic.format_
    topic.format_ = {**format_, "header_columns": []}
    assert topic.load().error is None
    topic.format_ = format_
    append(topic, b'{"id": 10, "_kafka_header_ce_id": 3}', EVENT)
    load = topic.load()
    assert (load.error, load.rows) == (None, 1)
    assert cells(topic) == [*((None, None, id_) for _, _, id_ in CELLS), ("a1", "shop.order", 10)]
    assert topic.rows("value_kafka_header_ce_id")[-1] == {"value_kafka_header_ce_id": 3}
    assert topic.replay().error is None
    assert cells(topic) == [*CELLS, ("a1", "shop.order", 10)]
    assert topic.deep().problems == ()


def test_a_name_that_is_removed_keeps_its_column(topic: TypedTopic) -> None:
    assert topic.load().error is None
    topic.format_ = {**topic.format_, "header_columns": ["ce_type"]}
    append(topic, b'{"id": 10}', EVENT)
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 1, 0)
    assert cells(topic) == [*CELLS, (None, "shop.order", 10)]


def test_a_redecode_fills_the_columns_of_records_that_did_not_decode(topic: TypedTopic) -> None:
    format_ = topic.format_
    topic.format_ = {**format_, "header_columns": [], "columns": {"id": "string"}}
    assert topic.load().error is None
    topic.format_ = {**format_, "columns": {"id": "long"}}
    result = redecode(request_of(topic))
    assert (result.failure, result.decoded) == (None, 3)
    assert [row[IDS] for row in topic.rows(IDS)] == ["a1", None, "a3", None, "a5"]
    assert verify(topic.table).proven


def test_a_redecode_keeps_the_texts_of_headers_that_are_not_stored(topic: TypedTopic) -> None:
    topic.format_ = {**topic.format_, "columns": {"id": "string"}, "load": {"headers": []}}
    assert topic.load().error is None
    assert [row[IDS] for row in topic.rows(IDS)] == ["a1", None, "a3", "a4", "a5"]
    topic.format_ = {**topic.format_, "columns": {"id": "long"}}
    result = redecode(request_of(topic))
    assert (result.failure, result.decoded) == (None, 3)
    assert [row[IDS] for row in topic.rows(IDS)] == ["a1", None, "a3", "a4", "a5"]
    assert topic.deep().problems == ()


def test_a_raw_table_gets_the_columns_when_it_becomes_typed(topic: TypedTopic) -> None:
    format_, topic.format_ = topic.format_, {}
    assert topic.load().error is None
    topic.format_ = format_
    assert convert_table(request_of(topic)).failure is None
    assert cells(topic) == CELLS
    assert topic.deep().problems == ()
