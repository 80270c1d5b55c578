"""A log that was truncated and written again has other records at the same offsets: no table may mix both (fault P23).

Which table a record belongs to depends on the record, so all tables of a topic must have the records of one log.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.fakes.cluster import Log
from tests.fakes.typed import TypedTopic
from tests.pipelines.identity.test_holes import answers_policy
from tests.pipelines.routes.test_routed_histories import before_commit, killed
from tests.pipelines.routes.test_routed_load import (
    TABLES,
    append,
    batch,
    loaded,
    offsets,
    problems_of_topic,
    table,
    topic,
)
from tests.pipelines.routes.test_schema_routes import Shop, avro, framed, registry, shop

pytestmark = pytest.mark.slow  # each test fills a table and changes it

__all__ = ["registry", "shop", "topic"]  # fixtures


def copy(log: Log) -> Log:
    return replace(log, entries=[*log.entries])


def test_a_table_without_a_lost_row_is_cut_where_the_others_are(topic: TypedTopic) -> None:
    """The rows of `orders` do not show where the log differs: only its last message does."""
    topic.format_ = {"tables": TABLES}
    topic.fake.logs = {0: batch(["order", None])}
    assert loaded(topic) == [[1], [0], []]
    kept = copy(topic.fake.logs[0])
    append(topic, ["payment", "payment", None])
    assert loaded(topic) == [[1, 4], [0], [2, 3]]
    topic.fake.logs = {0: kept}
    append(topic, ["order", "order", "order", None])
    topic.choices = {"on_truncated": "rewind"}
    assert loaded(topic) == [[1, 5], [0, 2, 3, 4], []]


def overtaken(topic: TypedTopic, other: Log) -> Callable[[], None]:
    """Let another run commit to the first table what it has read of the log before, and end."""

    def action() -> None:
        own, topic.fake.logs = topic.fake.logs, {0: other}
        with pytest.raises(KeyboardInterrupt), before_commit(2, killed):
            topic.load()
        topic.fake.logs = own

    return action


def check_no_table_has_mixed_rows(topic: TypedTopic, other: Log) -> None:
    """Load while another run overtakes this one in one table, with records of the former log."""
    with before_commit(1, overtaken(topic, other)):
        load = topic.load()
    assert str(load.error).startswith(("LogTruncated: ", "TopicRecreated: "))
    assert problems_of_topic(table(topic)) == []


def test_partitions_in_which_another_run_was_first_are_left_out_of_all_tables(topic: TypedTopic) -> None:
    topic.format_ = {"tables": TABLES}
    topic.fake.logs = {0: batch(["order", None])}
    assert loaded(topic) == [[1], [0], []]
    before = topic.fake.logs[0]
    other = copy(before)
    topic.fake.logs = {0: other}
    append(topic, ["order", "order"])
    topic.fake.logs = {0: copy(before)}
    append(topic, ["payment", "payment", None])
    check_no_table_has_mixed_rows(topic, other)
    assert [offsets(topic, route) for route in ("", "orders", "payments")] == [[1], [0, 2, 3], []]
    topic.choices = {"on_truncated": "rewind"}
    assert loaded(topic) == [[1, 4], [0], [2, 3]]


def test_partitions_in_which_another_run_was_first_are_left_out_of_all_tables_by_schema(shop: Shop) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    paid = shop.registry.register("shop.paid", avro("shop.paid", "paid"))
    shop.put(framed(order), None)
    shop.load()
    topic = shop.topic
    before = topic.fake.logs[0]
    other = copy(before)
    topic.fake.logs = {0: other}
    shop.put(framed(order), framed(order))
    topic.fake.logs = {0: copy(before)}
    shop.put(framed(paid), framed(paid), None)
    answers_policy(topic.fake, "delete")
    check_no_table_has_mixed_rows(topic, other)
    assert shop.offsets() == [[1], [0, 2, 3], []]
    topic.choices = {"on_truncated": "rewind"}
    shop.load()
    assert shop.offsets() == [[1, 4], [0], [2, 3]]
    shop.prove()
