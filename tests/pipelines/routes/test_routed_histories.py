"""Whatever happens to the tables of one topic, each offset is a row of exactly one of them in the end (fault P23)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.commit.commit import Change
from pipelines.maintenance.rewind import plan_rewind, rewind
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic
from tests.pipelines.routes.test_routed_load import TABLES, append, batch, json_of, offsets, prove, table
from tests.pipelines.routes.test_schema_routes import avro, framed

pytestmark = pytest.mark.slow  # each test fills a table and changes it

ROUTES = ("", "orders", "payments")
TYPES = st.sampled_from(["order", "payment", "payout", "other", None])
PARTITIONS = (0, 1)


@contextmanager
def before_commit(number: int, action: Callable[[], object]) -> Iterator[None]:
    """Do something just before the commit with this number."""
    write, count = Change.write, 0

    def watched(change: Change, *arguments: Any) -> int:
        nonlocal count
        count += 1
        if count == number:
            with patch.object(Change, "write", write):
                action()
        return write(change, *arguments)

    with patch.object(Change, "write", watched):
        yield


def killed() -> None:
    raise KeyboardInterrupt


@dataclass(kw_only=True)
class History:
    """A topic, and everything that was appended to it."""

    topic: TypedTopic
    value_of: Callable[[str | None, int], bytes | None]
    expected: dict[tuple[int, int], str] = field(default_factory=dict)

    def append(self, partition: int, types: list[str | None]) -> None:
        """Append records of these types to a partition."""
        for number, type_ in enumerate(types, self.topic.fake.logs[partition].end):
            self.expected[partition, number] = route_of(type_)
        append(self.topic, types, partition, self.value_of)

    def load(self) -> None:
        """Load the topic."""
        assert self.topic.load().error is None

    def load_killed(self, commit: int) -> None:
        """Load the topic, and end before the commit with this number."""
        try:
            with before_commit(commit, killed):
                self.topic.load()
        except KeyboardInterrupt:
            pass

    def load_overtaken(self, commit: int) -> None:
        """Another run loads the topic while this one is about to commit."""
        with before_commit(commit, self.load):
            self.topic.load()

    def rewind(self, route: str, back: int) -> None:
        """Rewind a table by some versions."""
        own = table(self.topic, route)
        snapshot = own.existing()
        if snapshot is None or snapshot.entry is None:
            return
        rewind(plan_rewind(own, max(0, snapshot.version - back), run="back"))


def route_of(type_: str | None) -> str:
    return {"order": "orders", "payment": "payments", "payout": "payments"}.get(type_ or "", "")


STEPS = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(PARTITIONS), st.lists(TYPES, min_size=1, max_size=5)),
    st.tuples(st.just("load")),
    st.tuples(st.just("load_killed"), st.integers(1, 3)),
    st.tuples(st.just("load_overtaken"), st.integers(1, 3)),
    st.tuples(st.just("rewind"), st.sampled_from(ROUTES), st.integers(1, 3)),
)


HISTORIES = st.lists(STEPS, min_size=3, max_size=9)


@given(HISTORIES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_tables_have_each_record_once_after_any_history(
    tmp_path_factory: Any, steps: list[tuple[Any, ...]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("history")
    check_history(folder, steps, {"format": "json", "tables": TABLES}, json_of)


@given(HISTORIES)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_tables_by_schema_have_each_record_once_after_any_history(
    tmp_path_factory: Any, steps: list[tuple[Any, ...]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("history")
    with EmbeddedSchemaRegistry() as registry:
        ids = {type_: registry.register(type_, avro(type_, type_)) for type_ in ("order", "payment", "payout", "other")}
        registries = {"main": {"url": registry.url}}
        format_ = {"format": "avro", "tables": {**TABLES, "by": "schema"}}
        check_history(
            folder, steps, format_, lambda type_, _: None if type_ is None else framed(ids[type_]), registries
        )


def check_history(
    folder: Path,
    steps: list[tuple[Any, ...]],
    format_: Mapping[str, Any],
    value_of: Callable[[str | None, int], bytes | None],
    registries: Mapping[str, Any] | None = None,
) -> None:
    """Check the tables of a topic with records of types, after these steps and one more load."""
    first = (None, "order")
    with FakeCluster(logs={partition: batch(first, 0, value_of) for partition in PARTITIONS}) as fake:
        topic = TypedTopic(fake=fake, folder=folder / "lake", format_=format_, registries=registries or {})
        expected = {(id_, number): route_of(type_) for id_ in PARTITIONS for number, type_ in enumerate(first)}
        history = History(topic=topic, value_of=value_of, expected=expected)
        for name, *arguments in steps:
            getattr(history, name)(*arguments)
        history.load()
        prove(topic)
        one_format = {name: value for name, value in format_.items() if name != "tables"}
        one_table = replace(topic, folder=folder / "one", format_=one_format)
        assert one_table.load().error is None
        assert sum(len(offsets(topic, route)) for route in ROUTES) == len(offsets(one_table))
        rows = {route: DeltaTable(table(topic, route).uri).to_pyarrow_table() for route in ROUTES}
        placed = {
            place: route
            for route, own in rows.items()
            for place in zip(own["_kafka_partition"].to_pylist(), own["_kafka_offset"].to_pylist(), strict=True)
        }
        assert placed == history.expected
