"""A topic with several event types: each type has its own table, and all of them are loaded with one fetch."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition
from kafka_io.records.build import Record, record_batch
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.commit import commit as commits
from pipelines.comparison.deep_verify import deep_verify
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.ledger import LedgerEntry
from pipelines.load.load import Loader
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import ReplayRequest
from pipelines.verify.topic_tables import other_tables, problems_between, verify_topic
from pipelines.verify.verify import verify
from resources.kafka import open_cluster, open_schema_registry
from resources.stores.lake import Lake
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import CountedFetches, TypedTopic, no_spark

pytestmark = pytest.mark.slow  # each test fills a table and changes it

TABLES: dict[str, Any] = {"by": "header:type", "names": {"order": "orders", "pay.*": "payments"}}
TYPES = ["order", "payment", None, "order", "other", "payout"]
P0 = BrokerPartition(None, 0)


def json_of(type_: str | None, number: int) -> bytes | None:
    """A JSON object whose only key is the type."""
    return json.dumps({type_ or "none": number}).encode()


def batch(
    types: Sequence[str | None], first: int = 0, value_of: Callable[[str | None, int], bytes | None] = json_of
) -> Log:
    """A log with a record of each type. None stands for a record without the header."""
    records = [
        Record(
            offset=first + number,
            timestamp=1_700_000_000_000 + number,
            key=None,
            value=value_of(type_, first + number),
            headers=((b"type", type_.encode()),) if type_ else (),
        )
        for number, type_ in enumerate(types)
    ]
    return Log(entries=[(records[-1].offset, record_batch(records))], start=first, end=first + len(records))


def append(
    topic: TypedTopic,
    types: Sequence[str | None],
    partition: int = 0,
    value_of: Callable[[str | None, int], bytes | None] = json_of,
) -> None:
    log = topic.fake.logs[partition]
    more = batch(types, log.end, value_of)
    log.entries += more.entries
    log.end = more.end


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: batch(TYPES)}
    with fake:
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "tables": TABLES})


def table(topic: TypedTopic, route: str = "") -> DeltaLakeTable:
    return DeltaLakeTable.of(Lake.of(topic.settings), "main", f"clicks/{route}" if route else "clicks")


def offsets(topic: TypedTopic, route: str = "") -> list[int]:
    rows = DeltaTable(table(topic, route).uri).to_pyarrow_table()
    return sorted(rows.column("_kafka_offset" if "_kafka_offset" in rows.schema.names else "offset").to_pylist())


def columns(topic: TypedTopic, route: str = "") -> set[str]:
    names = DeltaTable(table(topic, route).uri).to_pyarrow_table().schema.names
    return {name for name in names if not name.startswith("_")}


def by_table(load: TopicLoad) -> dict[str, int]:
    assert load.error is None
    return {own.topic: own.rows for own in load.of_tables}


def prove(topic: TypedTopic, *routes: str) -> None:
    """Each table is proven, its rows are those of the brokers, and each offset is in exactly one table."""
    tables = [table(topic, route) for route in routes or ("", "orders", "payments")]
    assert [other.uri for other in other_tables(tables[0])] == [other.uri for other in tables[1:]]
    assert list(problems_between(tables)) == []
    with open_cluster(topic.settings, "main") as cluster:
        for own in tables:
            assert verify(own).problems == ()
            format_ = topic.settings.format_of(own.where.topic or "")
            open_registry = partial(open_schema_registry, topic.settings)
            assert deep_verify(own, cluster, format_=format_, open_registry=open_registry).problems == ()


def problems_of_topic(own: DeltaLakeTable) -> list[str]:
    """The problems of all tables of the topic with this table, and between them."""
    return [problem for each in (own, *other_tables(own)) for problem in verify_topic(each).problems]


def loaded(topic: TypedTopic, *routes: str) -> list[list[int]]:
    """Load, and prove what is there then: the offsets in each table."""
    assert topic.load().error is None
    prove(topic, *routes)
    return [offsets(topic, route) for route in routes or ("", "orders", "payments")]


def with_tables(topic: TypedTopic, **changes: Any) -> None:
    topic.format_ = {**topic.format_, "tables": {**topic.format_["tables"], **changes}}


def test_each_type_has_its_table_with_its_columns(topic: TypedTopic) -> None:
    fetches = CountedFetches()
    load = topic.load(fetch=fetches)
    assert by_table(load) == {"clicks": 2, "clicks/orders": 2, "clicks/payments": 2}
    assert (offsets(topic), offsets(topic, "orders"), offsets(topic, "payments")) == ([2, 4], [0, 3], [1, 5])
    assert columns(topic) == {"none", "other"}
    assert columns(topic, "orders") == {"order"}
    assert columns(topic, "payments") == {"payment", "payout"}
    assert fetches.sizes == [6, 6]  # the second fetch is for the columns
    prove(topic)
    for route in ("", "orders", "payments"):
        snapshot = table(topic, route).existing()
        assert snapshot is not None
        assert snapshot.entry is not None
        [committed] = snapshot.entry.ranges
        assert (committed.rows, committed.gaps, snapshot.entry.covered) == (2, {"routed": 4}, {P0: (0, 6)})
    append(topic, ["order"])
    assert by_table(topic.load(fetch=fetches)) == {"clicks": 0, "clicks/orders": 1, "clicks/payments": 0}
    assert fetches.sizes == [6, 6, 1]
    prove(topic)
    assert by_table(topic.load()) == {"clicks": 0, "clicks/orders": 0, "clicks/payments": 0}


def test_a_table_has_settings_of_its_own_or_those_of_its_topic(topic: TypedTopic, tmp_path: Path) -> None:
    names = {"clicks": {"format": "json", "tables": TABLES}, "clicks/orders": {"format": "text"}, ".*": {}}
    base = topic.settings.model_dump(exclude={"topics", "choices"})
    assert base["lake"] == str(tmp_path / "lake")
    sections = type(topic.settings).model_validate({"lake": "x", "clusters": base["clusters"], "topics": names})
    formats = [sections.format_of(name).format for name in ("clicks", "clicks/orders", "clicks/payments", "views")]
    assert formats == ["json", "text", "json", "raw"]
    assert [sections.options_of(name).tables is None for name in ("clicks", "clicks/orders")] == [False, True]
    assert sections.rules("main").allows("clicks/orders")


def test_others_can_have_a_table_or_stop_the_load(topic: TypedTopic) -> None:
    with_tables(topic, others="fail")
    load = topic.load()
    assert load.rows == 0
    assert "RouteUnknown: the record at offset 4 has the type other in its header type" in str(load.error)
    with_tables(topic, others="rest")
    assert loaded(topic, "", "orders", "payments", "rest") == [[2], [0, 3], [1, 5], [4]]


def test_other_routes_than_those_of_the_rows_are_refused(topic: TypedTopic) -> None:
    one_table = {"format": "json"}
    topic.format_, with_routes = one_table, topic.format_
    assert topic.load().rows == 6
    topic.format_ = with_routes
    assert str(topic.load().error).startswith("RoutesChanged: ")
    assert topic.load().error is not None


def test_removed_or_changed_routes_are_refused(topic: TypedTopic) -> None:
    assert loaded(topic) == [[2, 4], [0, 3], [1, 5]]
    former = topic.format_
    for changed in ({"format": "json"}, {**former, "tables": {**TABLES, "others": "rest"}}):
        topic.format_ = changed
        append(topic, ["order"])
        load = topic.load()
        assert (load.rows, str(load.error).partition(":")[0]) == (0, "RoutesChanged")
        with open_cluster(topic.settings, "main") as cluster:
            run = Loader.of(topic.settings, cluster, no_spark).run
            request = ReplayRequest.parse("clicks", "earliest", "latest", now=datetime(2026, 1, 1, tzinfo=UTC))
            again = replay(run, table(topic), request)
            assert str(again.error).startswith("RoutesChanged: ")
    topic.format_ = former
    assert loaded(topic) == [[2, 4], [0, 3, 6, 7], [1, 5]]


def test_a_type_can_be_added_if_others_stopped_the_load(topic: TypedTopic) -> None:
    topic.fake.logs = {0: batch(["order", None, "payment"])}
    with_tables(topic, others="fail")
    assert loaded(topic) == [[1], [0], [2]]
    append(topic, ["order", "click"])
    assert topic.load().error is not None
    with_tables(topic, names={**TABLES["names"], "click": "clicks"})
    assert loaded(topic, "", "clicks", "orders", "payments") == [[1], [4], [0, 3], [2]]
    added = table(topic, "clicks").existing()
    assert added is not None
    assert added.entry is not None
    assert added.entry.covered == {P0: (3, 5)}
    append(topic, ["click"])
    assert loaded(topic, "", "clicks", "orders", "payments") == [[1], [4, 5], [0, 3], [2]]


@pytest.mark.parametrize("commits_done", [0, 1, 2, 3])
def test_a_crash_between_the_commits_is_mended_by_the_next_load(topic: TypedTopic, commits_done: int) -> None:
    assert topic.load().error is None
    append(topic, TYPES)
    write, done = commits.Change.write, 0

    def killed(change: Any, *arguments: Any) -> int:
        nonlocal done
        done += 1
        if done > commits_done:
            raise KeyboardInterrupt
        return write(change, *arguments)

    with patch.object(commits.Change, "write", killed):
        if commits_done < 3:
            with pytest.raises(KeyboardInterrupt):
                topic.load()
        else:
            topic.load()
    append(topic, ["payment"])
    sizes = [len(offsets(topic, route)) for route in ("orders", "payments", "")]
    assert sizes == [4] * commits_done + [2] * (3 - commits_done)
    assert loaded(topic) == [[2, 4, 8, 10], [0, 3, 6, 9], [1, 5, 7, 11, 12]]
    assert topic.load().rows == 0


@pytest.mark.parametrize("route", ["", "orders", "payments"])
def test_a_table_that_was_rewound_gets_its_rows_again_and_others_none(topic: TypedTopic, route: str) -> None:
    assert topic.load().error is None
    append(topic, TYPES)
    assert loaded(topic) == [[2, 4, 8, 10], [0, 3, 6, 9], [1, 5, 7, 11]]
    for version in (1, 0):
        rewind(plan_rewind(table(topic, route), version, run="back"))
        append(topic, ["order"])
        end = topic.fake.logs[0].end
        expected = [[2, 4, 8, 10], [0, 3, 6, 9, *range(12, end)], [1, 5, 7, 11]]
        assert loaded(topic) == expected


def test_a_lost_table_stops_the_load(topic: TypedTopic) -> None:
    assert topic.load().error is None
    Path(table(topic, "orders").uri).rename(topic.folder / "elsewhere")
    load = topic.load()
    assert str(load.error).startswith("TableLost: ")


def test_a_replay_of_one_table_fetches_its_own_records_only(topic: TypedTopic) -> None:
    assert topic.load().error is None
    for route in ("orders", ""):
        own = table(topic, route)
        name = own.where.topic or ""
        DeltaTable(own.uri).delete(f"_kafka_offset = {offsets(topic, route)[0]}")
        request = ReplayRequest.parse(name, "earliest", "latest", now=datetime(2026, 1, 1, tzinfo=UTC))
        with open_cluster(topic.settings, "main") as cluster:
            result = replay(Loader.of(topic.settings, cluster, no_spark).run, own, request)
        assert (result.error, result.changed) == (None, True)
    prove(topic)
    assert loaded(topic) == [[2, 4], [0, 3], [1, 5]]


def test_a_table_in_the_place_of_another_one_is_refused(topic: TypedTopic) -> None:
    assert topic.load().error is None
    orders, payments = Path(table(topic, "orders").uri), Path(table(topic, "payments").uri)
    orders.rename(topic.folder / "x")
    payments.rename(orders)
    (topic.folder / "x").rename(payments)
    assert "RoutesChanged: this is the table clicks/payments" in str(topic.load().error)


def test_what_a_log_has_lost_is_taken_out_of_all_tables_at_the_same_offset(topic: TypedTopic) -> None:
    """The record that is at an offset now may be of another type than the lost one (fault B03)."""
    topic.format_ = {"tables": TABLES}
    topic.fake.logs = {0: batch(["order", "payment", None])}
    assert loaded(topic) == [[2], [0], [1]]
    kept = topic.fake.logs[0]
    topic.fake.logs = {0: replace(kept, entries=[*kept.entries])}
    append(topic, [None, "payment", "order"])
    assert loaded(topic) == [[2, 3], [0, 5], [1, 4]]
    topic.fake.logs = {0: kept}
    append(topic, ["order", "order", "payment", None, "order"])
    load = topic.load()
    assert (load.rows, str(load.error).partition(":")[0]) == (0, "LogTruncated")
    topic.choices = {"on_truncated": "rewind"}
    assert loaded(topic) == [[2, 6], [0, 3, 4, 7], [1, 5]]
    kinds = [entry.kind for own in ("", "orders", "payments") for _, entry in entries_of(topic, own)]
    assert sorted(kinds) == ["cut", "cut", "cut", *["load"] * 9]


def test_a_recreated_topic_is_loaded_again_into_all_tables(topic: TypedTopic) -> None:
    assert topic.load().error is None
    topic.fake.logs = {0: batch(["payment", "order", *[None] * 5])}
    assert str(topic.load().error).startswith("TopicRecreated: ")
    topic.choices = {"on_recreated": "restart"}
    assert topic.load().error is None
    assert offsets(topic) == [2, 2, 3, 4, 4, 5, 6]
    assert (offsets(topic, "orders"), offsets(topic, "payments")) == ([0, 1, 3], [0, 1, 5])
    prove(topic)


def entries_of(topic: TypedTopic, route: str) -> list[tuple[int, LedgerEntry]]:
    own = table(topic, route)
    snapshot = own.existing()
    assert snapshot is not None
    return list(own.entries(snapshot))


def test_records_of_avro_have_the_columns_of_their_own_schemas(fake: FakeCluster, tmp_path: Path) -> None:
    """Each table asks the registry for the schemas of its own records only, whatever their subjects are called."""
    schemas = {
        type_: json.dumps({"type": "record", "name": type_, "fields": [{"name": field, "type": "long"}]})
        for type_, field in (("order", "amount"), ("payment", "paid"))
    }
    with EmbeddedSchemaRegistry() as registry:
        ids = {type_: registry.register(f"shop.{type_}", text) for type_, text in schemas.items()}
        records = [
            Record(
                offset=number,
                timestamp=1_700_000_000_000,
                key=None,
                value=b"\0" + ids[type_].to_bytes(4, "big") + bytes([2 * number]),
                headers=((b"type", type_.encode()),),
            )
            for number, type_ in enumerate(["order", "payment", "order", "payment"])
        ]
        fake.logs = {0: Log(entries=[(3, record_batch(records))], end=4)}
        with fake:
            topic = TypedTopic(
                fake=fake,
                folder=tmp_path / "lake",
                format_={"format": "avro", "tables": TABLES},
                registries={"main": {"url": registry.url}},
            )
            assert by_table(topic.load()) == {"clicks": 0, "clicks/orders": 2, "clicks/payments": 2}
            assert [columns(topic, route) for route in ("", "orders", "payments")] == [set(), {"amount"}, {"paid"}]
            [newest] = entries_of(topic, "orders")
            assert newest[1].schemas.values == (ids["order"],)
            assert by_table(topic.load()) == {"clicks": 0, "clicks/orders": 0, "clicks/payments": 0}
