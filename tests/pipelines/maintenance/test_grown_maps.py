"""A struct in a map gets a member: files from before it are written again before deltalake reads them (fault A26)."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from pipelines.delta.writes import grow_maps
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.clean import CleanResult, clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.redecode_result import TopicRedecode
from pipelines.verify.verify import verify
from resources.failpoints import KILL_AT
from resources.kafka import open_schema_registry
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.fuzz.readers import check_readers, comparable

pytestmark = pytest.mark.slow  # each test fills a table and changes it

_OLD, _NEW = "struct<a: long>", "struct<a: long, b: long>"
_SECRET = 7_654_321
"""So many digits are in no time, size or name of a file by chance."""


class _Shape(NamedTuple):
    """The type of a column around a struct, and a value without and one with its member `b`."""

    type: str
    old: Any
    new: Any

    def format(self, struct: str) -> dict[str, Any]:
        """The settings of the topic with this struct."""
        return {"format": "json", "columns": {"id": "long", "x": self.type.format(struct)}, "max_bad_share": 1}


_SHAPES: Mapping[str, _Shape] = {
    "value": _Shape("map<string, {}>", {"k": {"a": 1}}, {"k": {"a": 2, "b": 3}}),
    "map in a list": _Shape("array<map<string, {}>>", [{"k": {"a": 1}}], [{"k": {"a": 2, "b": 3}}]),
}


def _value(id_: Any, x: Any) -> bytes:
    return json.dumps({"id": id_, "x": x}).encode()


def _cleaned(topic: TypedTopic) -> CleanResult:
    return clean(topic.table, keep=timedelta(days=1), target_bytes=1 << 27, dry_run=False)


def _redecoded(topic: TypedTopic) -> TopicRedecode:
    request = RedecodeRequest(
        table=topic.table,
        format=topic.settings.format_of("clicks"),
        open_registry=partial(open_schema_registry, topic.settings),
        run="redecode",
    )
    return redecode(request)


def _rows(topic: TypedTopic) -> list[Any]:
    return [comparable((row["id"], row["x"])) for row in check_readers(topic.table.uri)]


@pytest.fixture(params=list(_SHAPES.values()), ids=list(_SHAPES))
def kind(request: pytest.FixtureRequest) -> _Shape:
    shape: _Shape = request.param
    return shape


@pytest.fixture
def topic(kind: _Shape, tmp_path: Path) -> Iterator[TypedTopic]:
    """Records 0 to 3 are older than the member, and 4 to 5 have it. The ids of 1 and 2 are texts."""
    first = log_of([_value(0, kind.old), _value("1", kind.old), _value("2", kind.new), _value(3, None)])
    with FakeCluster(logs={0: first}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path, format_=kind.format(_OLD))
        assert topic.load().bad_records == 2
        append(fake.logs[0], [_value(4, kind.new), _value(5, kind.old)])
        grown = replace(topic, format_=kind.format(_NEW))
        assert grown.load().error is None
        yield grown


def test_the_files_are_merged(topic: TypedTopic) -> None:
    rows = _rows(topic)
    assert _cleaned(topic).merged == 2
    assert len(DeltaTable(topic.table.uri).file_uris()) == 1
    assert _rows(topic) == rows
    _check(topic)
    assert _cleaned(topic).merged == 0


@pytest.mark.parametrize(("since", "until"), [("earliest", "latest"), ("0", "1"), ("4", "5")])
def test_rows_are_fetched_again(topic: TypedTopic, kind: _Shape, since: str, until: str) -> None:
    """Rows of both files, or of one of them."""
    rows = _rows(topic)
    old, new = kind.old, kind.new
    topic.fake.logs[0] = log_of([_value(10, old), _value("1", old), _value("2", new), _value(3, None)])
    append(topic.fake.logs[0], [_value(14, new), _value(5, old)])
    result = topic.replay(since, until, partitions=["0"])
    assert (result.error, result.changed) == (None, True)
    changed = {"0": (10, 4), "4": (0, 14), "earliest": (10, 14)}[since]
    assert [row[0] for row in _rows(topic)] == [changed[0], None, None, 3, changed[1], 5]
    assert [row[1] for row in _rows(topic)] == [row[1] for row in rows]
    assert verify(topic.table).proven


def test_a_replay_adds_the_member(kind: _Shape, tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_of([_value(0, kind.new), _value(1, kind.old)])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path, format_=kind.format(_OLD))
        assert topic.load().error is None
        grown = replace(topic, format_=kind.format(_NEW))
        result = grown.replay("0", "1", partitions=["0"])
        assert (result.error, result.changed) == (None, True)
        assert "3" in str(_rows(grown)[0])
        _check(grown)


def test_bad_records_are_decoded_again(topic: TypedTopic) -> None:
    rows = _rows(topic)
    result = _redecoded(
        replace(topic, format_={**topic.format_, "columns": {**topic.format_["columns"], "id": "json"}})
    )
    assert (result.failure, result.decoded) == (None, 2)
    after = _rows(topic)
    assert [after[number] for number in (0, 3, 4, 5)] == [rows[number] for number in (0, 3, 4, 5)]
    assert "3" in str(after[2])
    assert verify(topic.table).proven


def test_another_writer_is_first(topic: TypedTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is merged: a compaction on top of files that it has not seen would double their rows."""
    rows = _rows(topic)

    def late(handle: DeltaTable, options: Mapping[str, str], *, max_bytes: int) -> None:
        DeltaTable(topic.table.uri).alter.set_table_properties({"delta.appendOnly": "false"})
        grow_maps(handle, options, max_bytes=max_bytes)

    monkeypatch.setattr("pipelines.delta.compaction.grow_maps", late)
    result = _cleaned(topic)
    assert (result.busy, result.merged) == (True, 0)
    assert _rows(topic) == rows


def _bad_decoded(topic: TypedTopic) -> object:
    columns = {**topic.format_["columns"], "id": "json"}
    return _redecoded(replace(topic, format_={**topic.format_, "columns": columns}))


def _replayed(topic: TypedTopic) -> object:
    DeltaTable(topic.table.uri).delete("_kafka_offset = 5")
    return topic.replay()


_ACTS: Mapping[str, Callable[[TypedTopic], object]] = {
    "clean": _cleaned,
    "redecode": _bad_decoded,
    "replay": _replayed,
}


@pytest.mark.parametrize(("act", "step"), [("clean", 1), ("redecode", 1), ("replay", 1), ("replay", 2)])
def test_a_run_that_ends_after_its_first_commit_harms_nothing(
    act: str, step: int, topic: TypedTopic, kind: _Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old files are written again, and the commit that needs them is not there (fault A26)."""
    rows, version = _rows(topic), DeltaTable(topic.table.uri).version()
    if act == "replay" and step == 2:  # the replay also brings a member, with a commit of its own
        struct = "struct<a: long, b: long, c: long>"
        topic.fake.logs[0].entries[-1] = log_of([_value(4, kind.new), _value(5, kind.old)], first=4).entries[-1]
        topic = replace(topic, format_=kind.format(struct))
    monkeypatch.setenv(KILL_AT, f"raise:maps grown:{step}")
    monkeypatch.setattr("resources.failpoints._pass_counts", Counter())
    with pytest.raises(MemoryError):
        _ACTS[act](topic)
    monkeypatch.delenv(KILL_AT)
    assert DeltaTable(topic.table.uri).version() > version
    if act != "replay":
        assert (_rows(topic), verify(topic.table).proven) == (rows, True)
    append(topic.fake.logs[0], [_value(6, kind.new)])
    load = topic.load()
    if act == "replay":  # another program has deleted a row, so the load asks for a replay
        assert load.error is not None
    else:
        assert (load.error, load.rows) == (None, 1)
    assert _ACTS[act](topic)
    assert topic.load().error is None
    assert [row[0] for row in _rows(topic)][3:] == [3, 4, 5, 6]
    assert verify(topic.table).proven
    _cleaned(topic)
    assert len(DeltaTable(topic.table.uri).file_uris()) == 1
    assert verify(topic.table).proven


def test_a_compaction_that_is_killed_between_its_commits_is_done_by_the_next_one(
    topic: TypedTopic, kind: _Shape
) -> None:
    rows, uri = _rows(topic), topic.table.uri
    program = f"""
from datetime import timedelta
from pipelines.formats.tables import table_at
from pipelines.maintenance.clean import clean
clean(table_at({uri!r}), keep=timedelta(days=1), target_bytes=1 << 27, dry_run=False)
"""
    environment = {**os.environ, KILL_AT: "maps grown"}
    killed = subprocess.run([sys.executable, "-c", program], check=False, env=environment, timeout=60)
    assert killed.returncode == -9
    assert any("grown-" in path for path in DeltaTable(uri).file_uris())
    assert (_rows(topic), verify(topic.table).proven) == (rows, True)
    append(topic.fake.logs[0], [_value(6, kind.new)])
    load = topic.load()
    assert (load.error, load.rows) == (None, 1)
    assert _cleaned(topic).merged == 3
    assert _rows(topic)[:-1] == rows
    _check(topic)


def test_rows_of_old_files_are_erased(topic: TypedTopic) -> None:
    rows = _rows(topic)
    condition = parse_condition("id in (0, 4)")
    assert erase(EraseRequest(table=topic.table, condition=condition, run="erasure")).failure is None
    assert _rows(topic) == [row for row in rows if row[0] not in {0, 4}]
    _check(topic)


def test_large_files_stay(topic: TypedTopic) -> None:
    files = set(DeltaTable(topic.table.uri).file_uris())
    handle = DeltaTable(topic.table.uri)
    grow_maps(handle, {}, max_bytes=1)
    assert set(DeltaTable(topic.table.uri).file_uris()) == files
    grow_maps(handle, {}, max_bytes=1 << 27)
    assert len(set(DeltaTable(topic.table.uri).file_uris()) - files) == 1
    [action] = [add for add in topic.table.commits(handle.version()) if add.added][:1]
    assert (action.by_others, action.changed_rows) == (False, False)


def test_a_copy_of_a_file_has_no_bounds_of_personal_values(kind: _Shape, tmp_path: Path) -> None:
    with FakeCluster(logs={0: log_of([_value(_SECRET, kind.old)])}) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path, format_={**kind.format(_OLD), "personal": ["id"]})
        topic.load()
        append(fake.logs[0], [_value(78, kind.new)])
        replace(topic, format_={**kind.format(_NEW), "personal": ["id"]}).load()
        grow_maps(DeltaTable(topic.table.uri), {}, max_bytes=1 << 27)
    newest = max((Path(topic.table.uri) / "_delta_log").glob("*.json")).read_text()
    assert "grown-" in newest
    assert str(_SECRET) not in newest


def _check(topic: TypedTopic) -> None:
    assert verify(topic.table).proven
    assert not topic.deep().problems
