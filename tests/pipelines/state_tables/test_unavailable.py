"""Cells that a database did not send, because an update did not touch them, keep the value of the row before."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.records.build import Record, record_batch
from pipelines.maintenance.clean import clean
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.state_tables.proof import StateProof, prove_state
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.unavailable import placeholder_condition
from pipelines.state_tables.update import StateUpdate, update_state
from resources.settings.topic_state import UNAVAILABLE_VALUE
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.thorough import first

pytestmark = pytest.mark.slow  # state tables

LARGE = "large" * 10
Row = Mapping[str, Any]


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    with FakeCluster(logs={0: log_of([])}, offered=offered, topic_id=UUID(int=7)) as fake:
        yield fake


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> TypedTopic:
    return topic_of(fake, tmp_path)


def topic_of(fake: FakeCluster, folder: Path, **state: Any) -> TypedTopic:
    return TypedTopic(
        fake=fake,
        folder=folder / "lake",
        format_={"format": "debezium", "max_bad_share": 1.0, "state": {"key": ["id"], **state}},
    )


def event(op: str, number: int, lsn: int, text: Any = UNAVAILABLE_VALUE, *, state: Any = None) -> bytes:
    row = {"id": number, "state": state or f"at {lsn}", "text": text}
    rows = {"before": row if op == "d" else None, "after": None if op == "d" else row}
    return json.dumps({**rows, "source": {"lsn": lsn}, "op": op, "ts_ms": lsn}).encode()


def loaded(topic: TypedTopic, *events: bytes | None) -> None:
    if events:
        append(topic.fake.logs[0], events)
    assert topic.load().error is None


def update(topic: TypedTopic, **options: Any) -> StateUpdate:
    return update_state(topic.table, topic.settings.options_of("clicks"), **options)


def proof_of(topic: TypedTopic) -> StateProof:
    return prove_state(topic.table, topic.settings.options_of("clicks"))


def texts(topic: TypedTopic, column: str = "text") -> dict[Any, Any]:
    """The large value of each row of the state that is not deleted. Verify and a rebuild must agree with it."""
    assert proof_of(topic).problems == ()
    rows = state_rows(topic)
    update(topic, rebuild=True)
    assert state_rows(topic) == rows
    assert proof_of(topic).problems == ()
    return {row["id"]: row[column] for row in rows if not row["_deleted"]}


def state_rows(topic: TypedTopic) -> list[dict[str, Any]]:
    table = DeltaTable(state_output(topic.table).uri).to_pyarrow_table()
    return list(table.sort_by("id").to_pylist())


def test_a_cell_that_was_not_sent_keeps_the_value_of_the_row_before(topic: TypedTopic) -> None:  # fault A18
    loaded(topic, event("c", 1, 10, LARGE), event("c", 2, 20, "b"), event("u", 1, 30), event("u", 3, 40))
    update(topic)
    assert texts(topic) == {1: LARGE, 2: "b", 3: UNAVAILABLE_VALUE}  # nothing is known of the third
    loaded(topic, event("u", 1, 50), event("u", 2, 60), event("u", 2, 70), event("u", 3, 80))
    done = update(topic)
    assert (done.rebuilt, done.recomputed, done.changed) == (False, False, 3)
    assert texts(topic) == {1: LARGE, 2: "b", 3: UNAVAILABLE_VALUE}
    assert [row["state"] for row in state_rows(topic)] == ["at 50", "at 70", "at 80"]
    loaded(topic, event("u", 1, 90, "new"), event("u", 1, 100), event("u", 2, 110, None), event("u", 2, 120))
    update(topic)
    assert texts(topic) == {1: "new", 2: None, 3: UNAVAILABLE_VALUE}
    # The topic's table has what Debezium wrote.
    assert [row["text"] for row in topic.rows("text")][-2:] == [None, UNAVAILABLE_VALUE]


def test_a_row_that_comes_between_is_found_in_the_table_of_the_topic(topic: TypedTopic) -> None:  # fault A18
    """The state table does not say that its cell is from an older row."""
    loaded(topic, event("c", 1, 10, "old"), event("c", 2, 15, "b"), event("u", 1, 30))
    update(topic)
    loaded(topic, event("u", 1, 20, "between"), event("u", 2, 40, "b2"))
    assert update(topic).recomputed
    assert texts(topic) == {1: "between", 2: "b2"}


def test_old_events_without_such_cells_need_no_other_rows(topic: TypedTopic) -> None:
    loaded(topic, event("c", 1, 10, "a"), event("u", 1, 30, "b"))
    update(topic)
    loaded(topic, event("c", 1, 10, "a"))
    assert not update(topic).recomputed
    assert texts(topic) == {1: "b"}


def test_a_delete_ends_what_is_known(topic: TypedTopic) -> None:  # fault A18
    """A new row of the database with the same key is another row: for example one that got this key by an update."""
    loaded(topic, event("c", 1, 10, "old"), event("d", 1, 20), None, event("c", 2, 30, "b"))
    update(topic)
    assert texts(topic) == {2: "b"}
    loaded(topic, event("c", 1, 40), event("d", 2, 50, None))
    update(topic)
    assert texts(topic) == {1: UNAVAILABLE_VALUE}
    loaded(topic, event("u", 1, 60, "new"), event("u", 1, 70))
    update(topic)
    assert texts(topic) == {1: "new"}


@pytest.mark.parametrize("updates", [1, 2, 3])
def test_a_row_that_does_not_decode_does_not_hide_a_value(  # fault A18
    updates: int, fake: FakeCluster, tmp_path: Path
) -> None:
    topic = topic_of(fake, tmp_path, key=["_kafka_key_id"])
    topic = TypedTopic(fake=fake, folder=topic.folder, format_={**topic.format_, "key_format": "json"})
    steps = [event("c", 1, 10, "old"), b"no event", event("u", 1, 30)]
    for number, value in enumerate(steps):
        record = Record(offset=number, timestamp=number, key=b'{"id": 1}', value=value)
        fake.logs[0].entries.append((number, record_batch([record])))
        fake.logs[0].end = number + 1
        assert topic.load().error is None
        if number + updates >= len(steps):
            update(topic)
    assert proof_of(topic).problems == ()
    [row] = DeltaTable(state_output(topic.table).uri).to_pyarrow_table().to_pylist()
    assert (row["text"], row["_error"]) == ("old", None)


def test_a_rewind_and_housekeeping_give_the_same(topic: TypedTopic) -> None:  # fault A18
    loaded(topic, event("c", 1, 10, "a"), event("c", 2, 20, "b"))
    loaded(topic, event("u", 1, 30, "a2"), event("u", 2, 40), event("u", 1, 50))
    update(topic)
    assert texts(topic) == {1: "a2", 2: "b"}
    rewind(plan_rewind(topic.table, 1, run="back"))
    assert update(topic).recomputed
    assert texts(topic) == {1: "a", 2: "b"}
    loaded(topic)
    update(topic)
    clean(topic.table, keep=timedelta(0), target_bytes=2**20, dry_run=False)
    loaded(topic, event("u", 1, 60), event("u", 2, 70))
    update(topic)
    assert texts(topic) == {1: "a2", 2: "b"}


@pytest.mark.parametrize("name", ["format", "setting"])
def test_the_setting_names_another_placeholder(name: str, fake: FakeCluster, tmp_path: Path) -> None:
    """Events that a transformation made flat are plain JSON, and have the same cells."""
    if name == "format":
        format_ = {"format": "debezium", "state": {"key": ["id"], "unavailable_value": "?"}}
        events = [event("c", 1, 10, "a"), event("u", 1, 20, "?"), event("c", 2, 30, UNAVAILABLE_VALUE)]
    else:
        format_ = {"format": "json", "state": {"key": ["id"], "unavailable_value": "?"}}
        events = [b'{"id": 1, "text": "a"}', b'{"id": 1, "text": "?"}', b'{"id": 2, "text": "%s"}']
        events[2] = events[2].replace(b"%s", UNAVAILABLE_VALUE.encode())
    topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)
    loaded(topic, *events)
    update(topic)
    assert texts(topic) == {1: "a", 2: UNAVAILABLE_VALUE}
    with_none = TypedTopic(fake=fake, folder=topic.folder, format_={**format_, "state": {"key": ["id"]}})
    if name == "setting":
        assert update(with_none).rebuilt
        assert texts(with_none) == {1: "?", 2: UNAVAILABLE_VALUE}


def test_a_wrong_cell_is_found(topic: TypedTopic) -> None:  # fault A18
    loaded(topic, event("c", 1, 10, LARGE), event("u", 1, 30))
    update(topic)
    state = DeltaTable(state_output(topic.table).uri)
    state.update({"text": f"'{UNAVAILABLE_VALUE}'"})
    proof = proof_of(topic)
    assert (proof.wrong, proof.missing, proof.extra) == (1, 0, 0)


@pytest.mark.parametrize("seed", first(1, range(8)))
def test_many_updates_give_what_one_build_gives(seed: int, fake: FakeCluster, tmp_path: Path) -> None:  # fault A18
    """Repeated and old events and deletes, in updates of any size."""
    random, topic = Random(seed), topic_of(fake, tmp_path)
    loaded(topic, event("c", 0, 1, "first"))
    for _ in range(10):
        loaded(topic, *(_random_event(random) for _ in range(random.randint(1, 6))))
        if random.random() < 0.7:
            update(topic)
            assert present(topic) == expected(topic)
    update(topic)
    assert texts(topic) == expected(topic)


def _random_event(random: Random) -> bytes:
    text = random.choice([UNAVAILABLE_VALUE, UNAVAILABLE_VALUE, None, f"v{random.random()}"])
    return event(random.choice("cuuuud"), random.randrange(3), random.randrange(60), text)


def present(topic: TypedTopic) -> dict[int, str]:
    return {row["id"]: row["text"] for row in state_rows(topic) if not row["_deleted"]}


def expected(topic: TypedTopic) -> dict[int, str | None]:
    """The same from all rows of the topic's table, in plain Python."""
    rows = topic.rows("id", "text", "__op", "__source", "_kafka_offset")
    result: dict[int, str | None] = {}
    for row in sorted(rows, key=lambda row: (row["__source"]["lsn"], row["_kafka_offset"])):
        if row["__op"] == "d":
            result.pop(row["id"], None)
        else:
            is_sent = row["text"] != UNAVAILABLE_VALUE
            result[row["id"]] = row["text"] if is_sent else result.get(row["id"], UNAVAILABLE_VALUE)
    return result


OWN = UNAVAILABLE_VALUE.encode()
UUID_OF_DEBEZIUM = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
"""What Debezium writes into an array of UUIDs."""


@pytest.mark.parametrize(
    ("kind", "placeholder", "values"),
    [
        (pa.string(), UNAVAILABLE_VALUE, ["", "x", UNAVAILABLE_VALUE + "x", f"[{UNAVAILABLE_VALUE}]"]),
        (pa.string(), base64.b64encode(OWN).decode(), ["eA=="]),
        (pa.string(), OWN.hex(), ["5f5f"]),
        (pa.string(), f'["{UNAVAILABLE_VALUE}"]', ["[]"]),
        (pa.string(), f'{{"{UNAVAILABLE_VALUE}":"{UNAVAILABLE_VALUE}"}}', ["{}"]),
        (pa.string(), json.dumps(list(OWN), separators=(",", ":")), ["[95]"]),
        (pa.binary(), OWN, [b"", b"x", OWN + b"x"]),
        (pa.list_(pa.string()), [UNAVAILABLE_VALUE], [[], ["x"], [UNAVAILABLE_VALUE] * 2, [None]]),
        (pa.list_(pa.string()), [UUID_OF_DEBEZIUM], [[UUID_OF_DEBEZIUM] * 2]),
        (pa.list_(pa.binary()), [OWN], [[], [b"x"]]),
        (pa.list_(pa.int32()), list(OWN), [[], [95], list(OWN)[1:]]),
        (pa.list_(pa.int64()), list(OWN), [[], [95]]),
        (pa.list_(pa.float64()), [float(byte) for byte in OWN], [[], [95.0]]),
        (pa.list_(pa.decimal128(38, 2)), [Decimal(byte) / 100 for byte in OWN], [[], [Decimal("0.95")]]),
        (
            pa.map_(pa.string(), pa.string()),
            [(UNAVAILABLE_VALUE, UNAVAILABLE_VALUE)],
            [[], [("a", "b")], [(UNAVAILABLE_VALUE, "x"), ("a", "b")]],
        ),
        (
            pa.struct({"a": pa.string(), UNAVAILABLE_VALUE: pa.string()}),
            {UNAVAILABLE_VALUE: UNAVAILABLE_VALUE},
            [{"a": "b"}, {}],
        ),
    ],
    ids=str,
)
def test_each_type_has_its_own_placeholder(kind: pa.DataType, placeholder: Any, values: Sequence[Any]) -> None:
    """What Debezium's connector for Postgres writes into columns of these types."""
    condition = placeholder_condition(kind, "cell", UNAVAILABLE_VALUE)
    assert condition is not None
    arriving = pa.table({"cell": pa.array([placeholder, None, *values], kind)})
    with duckdb.connect() as connection:
        connection.register("arriving", arriving)
        answers = connection.execute(f"select coalesce({condition}, false) from arriving").fetchall()
    assert answers == [(True,), *[(False,)] * (1 + len(values))]


@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.date32(), pa.struct({"a": pa.string()}), pa.decimal128(9)])
def test_values_of_a_fixed_size_are_always_sent(kind: pa.DataType) -> None:
    assert placeholder_condition(kind, "cell", UNAVAILABLE_VALUE) is None


@pytest.mark.parametrize(
    ("setting", "cell"), [("hex:ff00", b"\xff\x00"), ("it's", b"it's"), ("{}", b"{}"), ("%", b"%")]
)
def test_a_placeholder_may_be_any_text_or_bytes(setting: str, cell: bytes) -> None:
    condition = placeholder_condition(pa.binary(), "cell", setting)
    text = placeholder_condition(pa.string(), "cell", setting)
    cells = pa.table({"cell": pa.array([cell, b"x"])})
    with duckdb.connect() as connection:
        connection.register("arriving", cells)
        assert connection.execute(f"select {condition} from arriving").fetchall() == [(True,), (False,)]
        connection.execute(f"select {text} from (select 'x' as cell)")


def test_cells_of_all_types_are_filled(fake: FakeCluster, tmp_path: Path) -> None:  # fault A18
    topic = topic_of(fake, tmp_path)
    values: dict[str, tuple[Any, Any]] = {
        "text": ("a", UNAVAILABLE_VALUE),
        "names": (["x", None, ""], [UNAVAILABLE_VALUE]),
        "numbers": ([1, 2], list(OWN)),
        "attributes": ({"k": "v"}, {UNAVAILABLE_VALUE: UNAVAILABLE_VALUE}),
        "reals": ([0.5], [float(byte) for byte in OWN]),
    }

    def row(number: int, lsn: int, side: int) -> bytes:
        after = {"id": number, **{name: sides[side] for name, sides in values.items()}}
        return json.dumps({"op": "u", "ts_ms": lsn, "after": after, "source": {"lsn": lsn}}).encode()

    loaded(topic, row(1, 10, 0), row(2, 11, 0))
    update(topic)
    loaded(topic, row(1, 20, 1), row(3, 21, 0), row(3, 22, 1))
    update(topic)
    for name, (value, _) in values.items():
        expected = {**value, UNAVAILABLE_VALUE: None} if isinstance(value, dict) else value
        assert texts(topic, name) == dict.fromkeys((1, 2, 3), expected), name
