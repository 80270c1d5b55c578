"""What `[topics.NAME.load]` keeps of records: the same in every format, and nothing of what it hides."""

import hmac
import json
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable

import pipelines.rewrites.redecode
from kafka_io.records.build import Record, record_batch
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.fetch_task import FetchTask, decode_task, to_json
from pipelines.layout.conditions import parse_condition
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.rewrites.redecode import RedecodeRequest
from pipelines.rewrites.redecode_result import TopicRedecode
from pipelines.rules.hash_keys import _hashes
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import CountedFetches, TypedTopic, append, log_of

KEY = b"0123456789abcdef"
ZELDA = (
    b'{"id": 1, "email": "zelda@example.org", "phone": "+49", "password": "geheim", '
    b'"address": {"street": "A 1", "city": "Ulm"}}'
)
YAN = b'{"id": 2, "email": null, "phone": null, "password": null, "address": {"street": null, "city": "Bonn"}}'
EMPTY = b'{"id": 3, "email": "", "phone": "", "password": ["x"], "address": null}'
RULES = {
    "drop": ["password", "address.street"],
    "mask": {"phone": "***"},
    "hash": {"email": "people"},
}


def hash_of(text: str) -> str:
    return f"k1:{hmac.digest(KEY, text.encode(), 'sha256').hex()[:32]}"


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    (tmp_path / "people").write_bytes(KEY)
    fake.logs = {0: log_of([ZELDA, YAN, EMPTY])}
    with fake:
        yield TypedTopic(
            fake=fake,
            folder=tmp_path / "lake",
            format_={"format": "json", "max_bad_share": 1, "load": RULES},
            secrets={
                "people": {"id": "k1", "key": f"file:{tmp_path}/people"},
                "others": {"id": "k2", "key": f"file:{tmp_path}/people"},
            },
        )


def with_rules(topic: TypedTopic, **rules: Any) -> None:
    topic.format_ = {**topic.format_, "load": rules}


def all_bytes(folder: Path) -> bytes:
    """The bytes of the lake, with all Parquet values as texts."""
    rows = DeltaTable(str(next(folder.rglob("_delta_log")).parent)).to_pyarrow_table().to_pylist()
    return repr(rows).encode() + b"".join(path.read_bytes() for path in folder.rglob("*.json"))


def test_inferred_columns_are_dropped_masked_and_hashed(topic: TypedTopic) -> None:
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 0)
    assert topic.rows("id", "email", "phone", "address") == [
        {"id": 1, "email": hash_of("zelda@example.org"), "phone": "***", "address": {"city": "Ulm"}},
        {"id": 2, "email": None, "phone": None, "address": {"city": "Bonn"}},
        {"id": 3, "email": hash_of(""), "phone": "***", "address": None},
    ]
    assert topic.snapshot.layout.values.names == ["id", "email", "phone", "address"]
    stored = all_bytes(topic.folder)
    assert not [text for text in (b"zelda", b"+49", b"geheim", b"A 1", KEY) if text in stored]
    assert topic.deep().problems == ()


def test_a_first_load_reads_a_sample_although_it_knows_the_fields_to_drop(
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sample each batch with a new key would be looked at in Python, which takes eight times as long."""
    monkeypatch.setattr("pipelines.fetch.slice_fetcher.MAX_VALUES", 1)
    fetches = CountedFetches()
    assert topic.load(fetch=fetches).error is None
    assert fetches.sizes == [1, 3]


def test_a_later_load_fetches_everything_once_and_adds_no_column(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], [b'{"id": 4, "email": 5, "phone": {"x": 1}, "password": 1, "address": {"street": [1]}}'])
    fetches = CountedFetches()
    load = topic.load(fetch=fetches)
    assert fetches.sizes == [1]
    assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
    assert topic.rows("id", "email", "phone", "address")[3:] == [
        {"id": 4, "email": hash_of("5"), "phone": "***", "address": {"city": None}},
    ]
    assert topic.deep().problems == ()


def test_declared_columns_are_dropped_masked_and_hashed_too(topic: TypedTopic) -> None:
    columns = {"id": "long", "email": "string", "phone": "string", "password": "json"}
    topic.format_ = {**topic.format_, "columns": {**columns, "address": "struct<street: string, city: string>"}}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 0)
    zelda = {"id": 1, "email": hash_of("zelda@example.org"), "phone": "***", "address": {"city": "Ulm"}}
    assert topic.rows("id", "email", "phone", "address")[0] == zelda
    assert topic.deep().problems == ()
    append(topic.fake.logs[0], [ZELDA])
    assert topic.load().error is None
    assert topic.rows("id", "email", "phone", "address")[3] == zelda


def test_numbers_in_lists_of_objects_and_a_mask_of_a_number_keep_their_shapes(topic: TypedTopic) -> None:
    topic.fake.logs = {
        0: log_of([b'{"lines": [{"mail": "a", "n": 1}, {"mail": null, "n": 2}], "mails": ["a", "b"], "age": 42}'])
    }
    with_rules(topic, hash={"lines.mail": "people", "mails": "people"}, mask={"age": 0})
    assert topic.load().error is None
    lines = [{"mail": hash_of("a"), "n": 1}, {"mail": None, "n": 2}]
    expected = {"lines": lines, "mails": [hash_of("a"), hash_of("b")], "age": 0}
    assert topic.rows("lines", "mails", "age") == [expected]
    append(topic.fake.logs[0], [b'{"lines": [], "mails": ["c", null], "age": "x"}'])
    assert topic.load().error is None
    assert topic.rows("lines", "mails", "age")[1:] == [{"lines": [], "mails": [hash_of("c"), None], "age": 0}]
    assert topic.deep().problems == ()


def test_one_text_has_one_hash_however_json_writes_it(topic: TypedTopic) -> None:
    same = [b'{"email": "z\\u00e9\\"a"}', '{"email": "z\u00e9\\"a"}'.encode(), b'{"email": 7}', b'{"email": "7"}']
    topic.fake.logs = {0: log_of(same)}
    with_rules(topic, hash={"email": "people"})
    assert topic.load().error is None
    assert [row["email"] for row in topic.rows("email")] == [hash_of('z\u00e9"a')] * 2 + [hash_of("7")] * 2


def test_a_rule_reaches_a_document_that_is_stored_as_text_and_names_of_any_case(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([b'{"address": {"street": "A 1"}, "Password": "geheim"}', b'{"address": "A 1, Ulm"}'])}
    load = topic.load()
    assert load.error is None
    stored = all_bytes(topic.folder)
    assert not [text for text in (b"A 1", b"geheim") if text in stored]


def test_a_rule_for_a_field_that_nothing_has_is_a_warning(topic: TypedTopic) -> None:
    with_rules(topic, mask={"telephone": "***"})
    assert topic.load().warnings == ("load: no value has had the field telephone of `mask`",)


AVRO = [("id", "long"), ("email", ["null", "string"]), ("ssn", "long"), ("password", "string")]


def avro_value(schema: Any, schema_id: int, value: Any) -> bytes:
    body = BytesIO()
    fastavro.schemaless_writer(body, schema, value)
    return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()


def record(*fields: tuple[str, Any]) -> Any:
    return {"type": "record", "name": "Click", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def test_avro_fields_of_several_types_have_one_column_of_hashes(topic: TypedTopic) -> None:
    """A schema may change the type of a field. Its hashes stay in one column, and dropped fields are not decoded."""
    with EmbeddedSchemaRegistry() as registry:
        v1, v2 = record(*AVRO), record(*AVRO[:2], ("ssn", "string"), AVRO[3])
        ids = [registry.register("clicks-value", json.dumps(text)) for text in (v1, v2)]
        person = {"id": 1, "email": "zelda@example.org", "ssn": 123, "password": "geheim"}
        topic.fake.logs = {0: log_of([avro_value(v1, ids[0], person)])}
        topic.format_ = {"format": "avro"}
        topic.registries = {"main": {"url": registry.url}}
        with_rules(topic, hash={"email": "people", "ssn": "people"}, drop=["password"])
        assert topic.load().error is None
        append(topic.fake.logs[0], [avro_value(v2, ids[1], {**person, "ssn": "123"}), None])
        assert topic.load().error is None
        expected = {"id": 1, "email": hash_of("zelda@example.org"), "ssn": hash_of("123")}
        assert topic.rows("id", "email", "ssn") == [expected, expected, dict.fromkeys(expected)]
        assert topic.snapshot.layout.values.names == ["_kafka_schema_id", "id", "email", "ssn"]
        assert topic.deep().problems == ()


def test_protobuf_and_text_and_debezium_have_the_same_rules(topic: TypedTopic, tmp_path: Path) -> None:
    (tmp_path / "person.proto").write_text(
        'syntax = "proto3"; message Person { string email = 1; map<string, string> mails = 2; int64 id = 3; }'
    )
    value = b"\x0a\x01z\x12\x06\x0a\x01k\x12\x01v\x18\x07"
    topic.fake.logs = {0: log_of([value])}
    topic.format_ = {"format": "protobuf", "proto_file": str(tmp_path / "person.proto")}
    with_rules(topic, hash={"email": "people", "mails": "people"}, mask={"id": "x"})
    assert topic.load().error is None
    assert topic.rows("email", "mails", "id") == [{"email": hash_of("z"), "mails": [("k", hash_of("v"))], "id": "x"}]


def test_a_text_is_hashed_as_a_whole(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([b"zelda", None])}
    topic.format_ = {"format": "text"}
    with_rules(topic, hash={"value": "people"})
    assert topic.load().error is None
    assert [row["value"] for row in topic.rows("value")] == [hash_of("zelda"), None]
    assert topic.deep().problems == ()


def test_the_row_of_a_change_event_is_ruled(topic: TypedTopic) -> None:
    event = {"before": None, "after": {"id": 1, "email": "zelda"}, "source": {"lsn": 7}, "op": "c", "ts_ms": 1}
    topic.fake.logs = {0: log_of([json.dumps(event).encode()])}
    topic.format_ = {"format": "debezium"}
    with_rules(topic, hash={"email": "people"}, drop=["id"])
    assert topic.load().error is None
    assert topic.rows("email", "__op") == [{"email": hash_of("zelda"), "__op": "c"}]
    assert "id" not in topic.snapshot.layout.values.names
    assert topic.deep().problems == ()


def test_keys_are_hashed_as_bytes_and_in_their_columns(topic: TypedTopic) -> None:
    topic.format_ = {"format": "json", "key_format": "text"}
    with_rules(topic, key="hash:people")
    assert topic.load().error is None
    assert topic.rows("_kafka_key", "_kafka_key_value")[1] == {
        "_kafka_key": hash_of("1").encode(),
        "_kafka_key_value": hash_of("1"),
    }
    append(topic.fake.logs[0], [b"{}"])
    assert topic.load().error is None
    assert topic.rows("_kafka_key_value")[3] == {"_kafka_key_value": hash_of("0")}
    assert topic.deep().problems == ()


def headers_log() -> Log:
    records = [
        Record(offset=0, timestamp=1, key=b"zelda", value=b"{}", headers=((b"trace-id", b"1"), (b"user", b"zelda"))),
        Record(offset=1, timestamp=1, key=b"zelda", value=b"{}", headers=((b"user", b"zelda"),)),
        Record(offset=2, timestamp=1, key=None, value=b"{}"),
    ]
    return Log(entries=[(2, record_batch(records))], start=0, end=3)


@pytest.mark.parametrize(("format_", "prefix"), [("json", "_kafka_"), ("raw", "")])
def test_only_the_named_headers_are_stored_and_a_dropped_key_is_null(
    topic: TypedTopic, format_: str, prefix: str
) -> None:
    topic.fake.logs = {0: headers_log()}
    topic.format_ = {"format": format_}
    with_rules(topic, key="drop", headers=["trace-id"])
    assert topic.load().error is None
    rows = DeltaTable(topic.table.uri).to_pyarrow_table().sort_by(f"{prefix}offset")
    assert rows.column(f"{prefix}headers").to_pylist() == [[{"key": "trace-id", "value": b"1"}], None, None]
    assert rows.column(f"{prefix}key").null_count == 3
    assert topic.deep().problems == ()
    assert not topic.replay().changed


def test_the_bytes_of_a_bad_record_are_not_stored_beside_a_rule_unless_the_settings_say_so(topic: TypedTopic) -> None:
    # fault X22
    topic.fake.logs = {0: log_of([b'{"email": "zelda", "email": "zelda"}', b'{"email": "a"}'])}
    assert topic.load().bad_records == 1
    [bad, _good] = topic.rows("_raw", "_error", "_tombstone")
    assert (bad["_raw"], bad["_tombstone"]) == (None, False)
    assert "zelda" not in bad["_error"]
    assert topic.deep().problems == ()
    result = redecode(topic)
    assert (result.failure, result.decoded, result.version) == (None, 0, topic.snapshot.version)
    assert result.warnings[0].startswith("1 records that did not decode stay as they are")
    with_rules(topic, **RULES, raw="keep")
    append(topic.fake.logs[0], [b'{"email": ["zelda'])
    assert topic.load().error is None
    assert [row["_raw"] for row in topic.rows("_raw")] == [None, None, b'{"email": ["zelda']
    assert topic.deep().problems == (), "the bytes of older rows are not compared"


def redecode(topic: TypedTopic) -> TopicRedecode:
    request = RedecodeRequest(
        table=topic.table,
        format=topic.settings.format_of("clicks"),
        open_registry=partial(open_schema_registry, topic.settings),
        run="again",
    )
    return pipelines.rewrites.redecode.redecode(request)


def test_a_redecode_applies_the_rules_and_leaves_keys_as_they_are(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([b'{"email": 1}'])}
    topic.format_ = {"format": "json", "key_format": "text", "columns": {"email": "string"}, "max_bad_share": 1}
    with_rules(topic, hash={"email": "people"}, key="hash:people", raw="keep")
    assert topic.load().bad_records == 1
    topic.format_ = {**topic.format_, "columns": {"email": "long"}}
    assert redecode(topic).decoded == 1
    expected = {"email": hash_of("1"), "_kafka_key": hash_of("0").encode(), "_kafka_key_value": hash_of("0")}
    assert topic.rows(*expected) == [expected]
    assert topic.deep().problems == ()


def test_a_replay_stores_by_the_same_rules(topic: TypedTopic) -> None:
    topic.load()
    assert not topic.replay().changed


CHANGES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"hash": {"email": "people"}}, "column: email."),
    ({}, {"mask": {"address.city": "***"}}, "column: address.city."),
    ({"mask": {"phone": "***"}}, {"mask": {"phone": "?"}}, "column: phone."),
    ({"hash": {"email": "people"}}, {}, "column: email."),
    ({"hash": {"email": "people"}}, {"hash": {"email": "others"}}, "column: email."),
    ({}, {"key": "hash:people"}, "column: _kafka_key."),
]


@pytest.mark.parametrize(("before", "after", "named"), CHANGES)
def test_a_change_that_would_put_two_meanings_into_a_column_is_refused(
    topic: TypedTopic, before: Any, after: Any, named: str
) -> None:  # fault X23
    with_rules(topic, **before)
    assert topic.load().error is None
    with_rules(topic, **after)
    append(topic.fake.logs[0], [ZELDA])
    load = topic.load()
    [failure] = load.failures
    assert (load.rows, failure.code, named in failure.reason) == (0, "PS-507", True)
    assert topic.replay().failure is not None
    assert topic.deep().failure is not None
    with_rules(topic, **before)
    assert topic.load().error is None


def test_what_is_only_stored_or_not_may_change_and_the_ledger_says_from_where(topic: TypedTopic) -> None:
    with_rules(topic)
    topic.load()
    append(topic.fake.logs[0], [ZELDA, b'{"new": 1}'])
    with_rules(topic, drop=["password"], hash={"new": "people"}, headers=[])
    assert topic.load().error is None
    assert [row["password"] for row in topic.rows("password")] == ['"geheim"', None, '["x"]', None, None]
    entry = topic.entry
    rules = entry.state.rules
    assert (rules.since, rules.drop, rules.hash) == (entry.sequence, ("password",), {"new": "k1"})
    assert topic.deep().problems == ()
    append(topic.fake.logs[0], [b"{}"])
    assert topic.load().error is None
    assert topic.entry.state.rules == rules
    text = entry.to_json()
    assert LedgerEntry.from_json(text) == entry
    assert KEY.decode() not in text


def test_a_table_without_rules_has_no_word_of_them_in_its_ledger(topic: TypedTopic) -> None:
    with_rules(topic)
    topic.load()
    assert '"rules"' not in topic.entry.to_json()


def test_another_key_under_the_same_id_is_refused(topic: TypedTopic, tmp_path: Path) -> None:
    topic.load()  # fault X21
    (tmp_path / "people").write_bytes(KEY[::-1])
    append(topic.fake.logs[0], [ZELDA])
    load = topic.load()
    [failure] = load.failures
    assert (load.rows, failure.code, "k1:" in failure.reason) == (0, "PS-507", True)


def test_a_worker_with_another_key_than_the_driver_refuses_its_slices(topic: TypedTopic, tmp_path: Path) -> None:
    # fault X21
    def in_worker(tasks: Sequence[FetchTask], *order: Any) -> list[SliceFacts]:
        (tmp_path / "people").write_bytes(KEY[::-1])
        _hashes.cache_clear()
        texts = [to_json(task) for task in tasks]
        assert not [text for text in texts if KEY.decode() in text]
        return fetch_here([decode_task(text) for text in texts], *order[:1])

    load = topic.load(fetch=in_worker)
    [failure] = load.failures
    assert (load.rows, failure.code) == (0, "PS-106")
    assert "another key than the one with which the load was planned" in failure.reason


def test_of_two_workers_with_different_keys_only_the_slices_of_the_planned_key_land(
    topic: TypedTopic, tmp_path: Path
) -> None:
    # fault X21
    topic.fake.logs = {0: log_of([ZELDA]), 1: log_of([ZELDA])}

    def in_workers(tasks: Sequence[FetchTask], *order: Any) -> list[SliceFacts]:
        keys = KEY, KEY[::-1]
        return [facts for task in tasks for facts in worker(keys[task.offsets.partition.partition], task, order)]

    def worker(key: bytes, task: FetchTask, order: tuple[Any, ...]) -> list[SliceFacts]:
        (tmp_path / "people").write_bytes(key)
        _hashes.cache_clear()
        return fetch_here([decode_task(to_json(task))], *order[:1])

    load = topic.load(fetch=in_workers)
    [failure] = load.failures
    assert (load.rows, failure.code) == (1, "PS-106")
    assert "hashes that begin with k1 would differ" in failure.reason
    assert topic.rows("_kafka_partition", "email") == [{"_kafka_partition": 0, "email": hash_of("zelda@example.org")}]
    (tmp_path / "people").write_bytes(KEY)
    _hashes.cache_clear()
    assert topic.load().rows == 1
    assert {row["email"] for row in topic.rows("email")} == {hash_of("zelda@example.org")}


@pytest.mark.parametrize("key", [None, "hash:people"])
def test_an_empty_text_has_a_hash_and_a_missing_value_has_none(topic: TypedTopic, key: str | None) -> None:
    # fault X24
    values = [b'{"email": ""}', b'{"email": null}', b"{}", b'{"email": 1}', b'{"email": "1"}']
    records = [
        Record(offset=number, timestamp=1, key=own, value=value)
        for number, (own, value) in enumerate(zip((b"", None, b"1", b"", None), values, strict=True))
    ]
    topic.fake.logs = {0: Log(entries=[(4, record_batch(records))], end=5)}
    with_rules(topic, hash={"email": "people"}, **({"key": key} if key else {}))
    assert topic.load().error is None
    rows = topic.rows("email", "_kafka_key")
    assert [row["email"] for row in rows] == [hash_of(""), None, None, hash_of("1"), hash_of("1")]
    expected = [b"", None, b"1", b"", None]
    hashed = [own if own is None or key is None else hash_of(own.decode()).encode() for own in expected]
    assert [row["_kafka_key"] for row in rows] == hashed
    assert topic.deep().problems == ()
    result = erase(EraseRequest(table=topic.table, condition=parse_condition("email is null"), run="erasure"))
    assert (result.failure, result.rows) == (None, 2)


def test_a_deep_verify_after_a_rotation_of_a_secret_says_so_and_calls_no_row_wrong(
    topic: TypedTopic, tmp_path: Path
) -> None:
    # faults X21, X23
    topic.load()
    assert topic.deep().problems == ()
    (tmp_path / "people").write_bytes(KEY[::-1])
    _hashes.cache_clear()
    replaced = topic.deep()
    assert replaced.failure is not None
    assert (replaced.compared, replaced.failure.code, "k1:" in replaced.failure.reason) == ((), "PS-507", True)
    assert topic.replay().failure is not None
    (tmp_path / "people").write_bytes(KEY)
    _hashes.cache_clear()
    with_rules(topic, **RULES | {"hash": {"email": "others"}})
    rotated = topic.deep()
    assert rotated.failure is not None
    assert (rotated.compared, rotated.failure.code, "email" in rotated.failure.reason) == ((), "PS-507", True)
    with_rules(topic, **RULES)
    assert topic.deep().problems == ()


@pytest.mark.parametrize(("key", "message"), [(b"short", "shorter than 16 bytes"), (None, "cannot be read")])
def test_a_key_that_is_short_or_missing_stops_the_load(
    topic: TypedTopic, tmp_path: Path, key: bytes | None, message: str
) -> None:
    (tmp_path / "people").unlink()
    if key:
        (tmp_path / "people").write_bytes(key)
    load = topic.load()
    [failure] = load.failures
    assert message in failure.reason
