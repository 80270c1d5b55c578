"""A struct in a map gets a member: outputs of increments and state tables take rows from before and after it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, apply_increment
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.clean_state import clean_state
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import update_state
from pipelines.verify.verify import verify
from resources.failpoints import KILL_AT
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.fuzz.readers import READERS, comparable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

_OLD = pa.struct([("a", pa.int64())])


class _Shape(NamedTuple):
    """The type of a column around a struct, as the settings and as Arrow have it, and a value around a struct."""

    text: str
    type: Callable[[pa.DataType], pa.DataType]
    value: Callable[[Mapping[str, int]], Any]

    def format(self, struct: str) -> dict[str, Any]:
        """The settings of the topic with this struct."""
        columns = {"id": "long", "x": self.text.format(struct)}
        return {"format": "json", "columns": columns, "state": {"key": ["id"]}, "max_bad_share": 1}


_SHAPES: Mapping[str, _Shape] = {
    "map": _Shape("map<string, {}>", lambda kind: pa.map_(pa.string(), kind), lambda own: {"k": own}),
    "list": _Shape(
        "array<map<string, {}>>", lambda kind: pa.list_(pa.map_(pa.string(), kind)), lambda own: [{"k": own}]
    ),
}


@pytest.fixture(params=list(_SHAPES.values()), ids=list(_SHAPES))
def kind(request: pytest.FixtureRequest) -> _Shape:
    shape: _Shape = request.param
    return shape


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "out"))


def _value(kind: _Shape, id_: int, **members: int) -> bytes:
    return json.dumps({"id": id_, "x": kind.value(members)}).encode()


@pytest.fixture
def topic(kind: _Shape, tmp_path: Path, output: DeltaOutput) -> Iterator[TypedTopic]:
    """Records 0 to 2 are older than the member b, and 3 and 4 have it. The consumer has seen the older ones."""
    with FakeCluster(logs={0: log_of([_value(kind, number, a=number) for number in range(3)])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=kind.format("struct<a: long>"))
        assert topic.load().error is None
        _state(topic)
        _follow(topic, output)
        append(fake.logs[0], [_value(kind, 3, a=3, b=33), _value(kind, 4, a=4, b=44)])
        grown = replace(topic, format_=kind.format("struct<a: long, b: long>"))
        assert grown.load().error is None
        yield grown


def _state(topic: TypedTopic) -> None:
    update_state(topic.table, topic.settings.options_of("clicks"))


def _copy(increment: Increment) -> pa.Table:
    return increment.arrow(["id", "x"]).read_all()


def _follow(topic: TypedTopic, output: DeltaOutput, transform: Callable[[Increment], pa.Table] = _copy) -> None:
    assert apply_increment(topic.table, transform, consumer="c", into=output)


def _erased(topic: TypedTopic, where: str) -> None:
    assert erase(EraseRequest(table=topic.table, condition=parse_condition(where), run="erasure")).failure is None


def _rows(uri: str) -> dict[int, str]:
    """The members of each row, as all readers see them."""
    table = DeltaTable(uri)
    read = [open_reader(table).rows().to_pylist() for open_reader in READERS.values()]
    by_id = [{row["id"]: _members(comparable(row["x"])) for row in rows if not row.get("_deleted")} for rows in read]
    assert all(rows == by_id[0] for rows in by_id)
    return dict(sorted(by_id[0].items()))


def _members(x: Any) -> str:
    while not isinstance(x, dict) or "a" not in x:
        x = next(iter(x.values())) if isinstance(x, dict) else x[-1]
    return f"{x['a']} {x.get('b')}"


_EXPECTED = {0: "0 None", 1: "1 None", 2: "2 None", 3: "3 33", 4: "4 44"}


def test_an_output_takes_rows_of_the_new_type_and_loses_old_ones(topic: TypedTopic, output: DeltaOutput) -> None:
    # fault A26
    _follow(topic, output)
    assert _rows(output.uri) == _EXPECTED
    _erased(topic, "id in (1, 3)")
    _follow(topic, output)
    assert _rows(output.uri) == {id_: own for id_, own in _EXPECTED.items() if id_ not in {1, 3}}
    assert _rows(topic.table.uri) == _rows(output.uri)
    assert verify(topic.table).proven


@pytest.mark.parametrize("step", ["", "output columns added", "maps grown", "before increment entry"])
def test_one_increment_brings_a_member_and_removes_rows_of_old_files(
    step: str, topic: TypedTopic, output: DeltaOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end between its commits (fault A26)."""
    before = _rows(output.uri)
    _erased(topic, "id = 1")
    if step:
        monkeypatch.setenv(KILL_AT, f"raise:{step}")
        monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
        with pytest.raises(MemoryError):
            _follow(topic, output)
        monkeypatch.delenv(KILL_AT)
        assert _rows(output.uri) == before
    _follow(topic, output)
    assert _rows(output.uri) == {id_: own for id_, own in _EXPECTED.items() if id_ != 1}


def _with_old_type(rows: pa.Table, kind: _Shape) -> pa.Table:
    values = pa.array([kind.value({"a": id_}) for id_ in rows.column("id").to_pylist()], kind.type(_OLD))
    return rows.set_column(rows.schema.get_field_index("x"), "x", values)


def test_an_output_with_folders_keeps_the_folders_of_its_rows(topic: TypedTopic, tmp_path: Path, kind: _Shape) -> None:
    # fault A26
    output = DeltaOutput(uri=str(tmp_path / "folders"), partition_by=["place", "day"])
    place = "a b/%20=\N{SNOWMAN}"

    def placed(increment: Increment) -> pa.Table:
        rows = _copy(increment)
        days = [None if id_ == 2 else date(2026, 1, 1 + id_) for id_ in rows.column("id").to_pylist()]
        rows = rows.append_column("place", pa.array([place] * len(rows)))
        return rows.append_column("day", pa.array(days, pa.date32()))

    _follow(topic, output, lambda increment: _with_old_type(placed(increment), kind))
    append(topic.fake.logs[0], [_value(kind, 5, a=5, b=55)])
    assert topic.load().error is None
    _erased(topic, "id in (0, 3)")
    _follow(topic, output, placed)
    assert _rows(output.uri) == {1: "1 None", 2: "2 None", 4: "4 None", 5: "5 55"}
    rows = DeltaTable(output.uri).to_pyarrow_table().sort_by("id").select(["id", "place", "day"]).to_pylist()
    days = {1: date(2026, 1, 2), 2: None, 4: date(2026, 1, 5), 5: date(2026, 1, 6)}
    assert rows == [{"id": id_, "place": place, "day": day} for id_, day in days.items()]


def test_an_output_takes_rows_of_the_old_type_after_those_of_the_new_one(
    topic: TypedTopic, output: DeltaOutput, kind: _Shape
) -> None:
    """The transform makes its own type, for example in another version of it (fault A26)."""

    def older(increment: Increment) -> pa.Table:
        return _with_old_type(_copy(increment), kind)

    _follow(topic, output)
    append(topic.fake.logs[0], [_value(kind, 5, a=5, b=55)])
    assert topic.load().error is None
    _follow(topic, output, older)
    assert _rows(output.uri) == {**_EXPECTED, 5: "5 None"}
    _erased(topic, "id in (0, 3)")
    append(topic.fake.logs[0], [_value(kind, 6, a=6, b=66)])
    assert topic.load().error is None
    _follow(topic, output, older)
    expected = {id_: own for id_, own in {**_EXPECTED, 5: "5 None", 6: "6 None"}.items() if id_ not in {0, 3}}
    assert _rows(output.uri) == expected
    append(topic.fake.logs[0], [_value(kind, 7, a=7, b=77)])
    assert topic.load().error is None
    _erased(topic, "id = 5")
    _follow(topic, output)
    del expected[5]
    assert _rows(output.uri) == {**expected, 7: "7 77"}


def test_a_state_table_takes_rows_of_both_types_and_is_merged(topic: TypedTopic, kind: _Shape) -> None:  # fault A26
    _state(topic)
    uri = state_output(topic.table).uri
    assert _rows(uri) == _EXPECTED
    append(topic.fake.logs[0], [_value(kind, 2, a=20), _value(kind, 9, a=9, b=99)])
    assert topic.load().error is None
    _state(topic)
    result = clean_state(topic.table, keep=timedelta(days=1), target_bytes=1 << 20, dry_run=False)
    assert not result.busy
    _erased(topic, "id = 0")
    _state(topic)
    expected = {**_EXPECTED, 2: "20 None", 9: "9 99"}
    del expected[0]
    assert _rows(uri) == expected
    assert len(DeltaTable(uri).file_uris()) >= 1
