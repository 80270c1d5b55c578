"""What `[topics.NAME.load]` keeps of records: the same in every format, and nothing of what it hides."""

import hmac
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import CountedFetches, TypedTopic, append, log_of

KEY = b"0123456789abcdef"
ZELDA = b'{"id": 1, "email": "zelda@example.org", "phone": "+49", "password": "geheim", "address": {"street": "A 1", "city": "Ulm"}}'
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
            secrets={"people": {"id": "k1", "key": f"file:{tmp_path}/people"}},
        )


def with_rules(topic: TypedTopic, **rules: Any) -> None:
    topic.format_ = {**topic.format_, "load": rules}


def all_bytes(folder: Path) -> bytes:
    """The bytes of the lake, with all Parquet values as texts."""
    from deltalake import DeltaTable

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
    assert "password" not in topic.rows("_kafka_offset", *[])[0]
    stored = all_bytes(topic.folder)
    assert not [text for text in (b"zelda", b"+49", b"geheim", b"A 1", b"street", b"password") if text in stored]
    assert topic.deep().problems == ()


def test_a_later_load_fetches_everything_once_and_adds_no_column(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], [b'{"id": 4, "email": 5, "phone": {"x": 1}, "password": 1, "address": {"street": [1]}}'])
    fetches = CountedFetches()
    load = topic.load(fetch=fetches) if False else topic.load()
    assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
    assert topic.rows("id", "email", "phone", "address")[3:] == [
        {"id": 4, "email": hash_of("5"), "phone": "***", "address": {"city": None}},
    ]
    assert topic.deep().problems == ()


@pytest.mark.parametrize(
    "columns",
    [
        {
            "id": "long",
            "email": "string",
            "phone": "string",
            "password": "json",
            "address": "struct<street: string, city: string>",
        }
    ],
)
def test_declared_columns_are_too(topic: TypedTopic, columns: Mapping[str, str]) -> None:
    topic.format_ = {**topic.format_, "columns": columns}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 0)
    assert topic.rows("id", "email", "phone", "address")[0] == {
        "id": 1,
        "email": hash_of("zelda@example.org"),
        "phone": "***",
        "address": {"city": "Ulm"},
    }
    assert topic.deep().problems == ()
    append(topic.fake.logs[0], [ZELDA])
    assert topic.load().error is None
    assert topic.rows("email")[3] == {"email": hash_of("zelda@example.org")}
