"""`penstock verify TOPIC --tables`, and what other commands do with one of the tables of a topic."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from pipelines.cli.main import main
from pipelines.verify import topic_tables
from pipelines.verify.topic_tables import other_tables, problems_between, verify_topic
from tests.fakes.cluster import Log
from tests.fakes.typed import TypedTopic
from tests.pipelines.routes.test_routed_load import (
    TABLES,
    TYPES,
    append,
    batch,
    offsets,
    prove,
    table,
    topic,
    with_tables,
)

pytestmark = pytest.mark.slow  # each test fills a table and changes it

__all__ = ["topic"]  # a fixture


def problems(topic: TypedTopic) -> list[str]:
    own = table(topic)
    found_by_name = list(problems_between([own, *other_tables(own)]))
    assert list(verify_topic(own).problems) == found_by_name
    return found_by_name


def replaced_by(topic: TypedTopic, names: dict[str, str]) -> None:
    """Put a table of the same name in the place of `orders`, which was loaded with other types."""
    other = replace(
        topic, folder=topic.folder / "-".join(names), format_={"format": "json", "tables": {**TABLES, "names": names}}
    )
    assert other.load().error is None
    shutil.rmtree(table(topic, "orders").uri)
    shutil.copytree(table(other, "orders").uri, table(topic, "orders").uri)


def test_offsets_in_two_tables_or_in_none_are_named(topic: TypedTopic) -> None:
    assert topic.load().error is None
    assert problems(topic) == []
    replaced_by(topic, {"order": "orders", "payment": "orders"})
    assert problems(topic) == ["1 offsets of partition 0 are rows of several tables of the topic: 1"]
    replaced_by(topic, {"payout": "orders"})
    assert problems(topic) == [
        "2 offsets of partition 0 are rows of no table of the topic, and no gaps: 0, 3",
        "1 offsets of partition 0 are rows of several tables of the topic: 5",
    ]
    shutil.rmtree(table(topic, "orders").uri)
    [gone] = verify_topic(table(topic, "orders")).problems
    assert gone.startswith("there is no table ")
    assert verify_topic(table(topic)).problems == ()


def test_gaps_of_the_log_are_gaps_of_all_tables(topic: TypedTopic) -> None:
    first, second = batch(TYPES), batch(["order", None, "order"], 9)
    topic.fake.logs = {0: Log(entries=[*first.entries, *second.entries], end=second.end)}
    topic.choices = {"on_missing": "skip"}
    assert topic.load().error is None
    assert (offsets(topic), offsets(topic, "orders")) == ([2, 4, 10], [0, 3, 9, 11])
    prove(topic)
    replaced_by(topic, {".*": "orders"})
    assert problems(topic) == ["3 offsets of partition 0 are rows of several tables of the topic: 1, 4 to 5"]


def test_a_table_that_is_ahead_is_compared_up_to_the_cursor_of_the_others(topic: TypedTopic) -> None:
    topic.fake.logs = {0: batch(TYPES), 1: batch(["order"])}
    assert topic.load().error is None
    later = table(topic, "orders")
    kept = topic.folder / "kept"
    shutil.copytree(table(topic).uri, kept)
    append(topic, ["order", None])
    assert topic.load().error is None
    shutil.rmtree(table(topic).uri)
    shutil.copytree(kept, table(topic).uri)
    assert problems(topic) == []
    assert topic.load().error is None
    prove(topic)
    assert offsets(topic, "orders") == sorted([0, 0, 3, 6])
    assert later.existing() is not None


@pytest.fixture
def penstock(topic: TypedTopic, tmp_path: Path) -> Callable[..., Result]:
    """Run a command with the settings of the topic."""
    file = tmp_path / "penstock.toml"
    bootstrap = ",".join(broker.address for broker in topic.fake.bootstrap)
    file.write_text(
        f'lake = "{topic.folder}"\n[clusters.main]\nbootstrap = "{bootstrap}"\n[caps]\nattempts = 1\n'
        '[topics.clicks]\nformat = "json"\n[topics.clicks.tables]\nby = "header:type"\n'
        'names = { order = "orders", "pay.*" = "payments" }\n'
    )
    return lambda *words: CliRunner().invoke(main, ["--settings", str(file), *words])


def results(result: Result, code: int = 0) -> Sequence[dict[str, Any]]:
    assert result.exit_code == code, result.output
    records: Sequence[dict[str, Any]] = json.loads(result.stdout)["results"]
    return records


def test_commands_take_the_name_of_one_of_the_tables(topic: TypedTopic, penstock: Callable[..., Result]) -> None:
    loaded = results(penstock("load", "clicks", "--json"))
    assert [(own["topic"], own["rows"]) for own in loaded] == [
        ("clicks", 2),
        ("clicks/orders", 2),
        ("clicks/payments", 2),
    ]
    assert "clicks/payments" in penstock("load", "clicks").output
    proofs = results(penstock("verify", "clicks", "--tables", "--json"))
    assert [(own["topic"], own["proven"]) for own in proofs] == [(own["topic"], True) for own in loaded]
    append(topic, ["order"])
    [status] = results(penstock("status", "clicks/orders", "--json"))
    assert (status["topic"], status["lag"], status["errors"]) == ("clicks/orders", 1, [])
    assert [own["topic"] for own in results(penstock("status", "--json"))] == [own["topic"] for own in loaded]
    assert "has a topic 'clicks/nothing'" in penstock("status", "clicks/nothing").output
    for command in ("load", "tail"):
        refused = penstock(command, "clicks/orders").output
        assert "has no topic 'clicks/orders': it is the name of a table of the topic 'clicks'" in refused
    erase = ("erase", "clicks/orders", "--where", "_kafka_offset = 3")
    says = "the topic has other tables, which keep their rows: erase in them, too: clicks, clicks/payments"
    assert says in " ".join(penstock(*erase, "--dry-run").stderr.split())
    [erased] = results(penstock(*erase, "--yes", "--request", "T-1", "--json"))
    assert (erased["topic"], erased["rows"]) == ("clicks/orders", 1)
    refused = " ".join(penstock("erase", "clicks", "--where", "email = 'a'", "--yes").stderr.split())
    assert "erase in them, too: clicks/orders, clicks/payments" in refused
    certificate = " ".join(penstock(*erase, "--certificate", "T-1").stdout.split())
    assert "of their own: clicks, clicks/payments" in certificate
    assert "Not of Penstock: Kafka: 1 partition may have the records" in certificate
    [replayed] = results(penstock("replay", "clicks/orders", "--from", "earliest", "--to", "latest", "--json"))
    assert replayed["topic"] == "clicks/orders"
    assert offsets(topic, "orders") == [0]  # what was erased does not come back
    [deep] = results(penstock("verify", "clicks/orders", "--deep", "--json"))
    assert (deep["proven"], deep["partitions"][0]["gaps"]) == (True, {"erased": 1, "routed": 4})
    for words in (("history", "clicks/orders"), ("schema", "clicks/orders"), ("clean", "clicks/orders", "--delete")):
        assert penstock(*words).exit_code == 0
    assert results(penstock("load", "clicks", "--json"))[1]["rows"] == 1
    prove(topic)


def test_a_proof_finds_the_other_tables_of_a_topic_once(topic: TypedTopic, penstock: Callable[..., Result]) -> None:
    assert topic.load().error is None
    names = ("clicks/orders", "clicks", "clicks/payments")
    for selected in (("clicks",), names[:1], names, ("--all",)):
        with patch.object(topic_tables, "other_tables", wraps=other_tables) as asked:
            records = results(penstock("verify", *selected, "--tables", "--json"))
        assert [(own["topic"], own["proven"]) for own in records] == [(name, True) for name in sorted(names)]
        assert asked.call_count == 1


def test_the_tables_of_a_topic_are_compared_whichever_of_them_is_named(
    topic: TypedTopic, penstock: Callable[..., Result]
) -> None:
    assert topic.load().error is None
    replaced_by(topic, {"order": "orders", "payment": "orders"})
    for selected in (("clicks",), ("clicks/payments",), ("clicks/payments", "clicks")):
        [own, *others] = results(penstock("verify", *selected, "--tables", "--json"), code=5)
        assert own["problems"] == ["1 offsets of partition 0 are rows of several tables of the topic: 1"]
        assert (own["proven"], [other["proven"] for other in others]) == (False, [True, True])


def test_a_lost_table_is_no_proof(topic: TypedTopic, penstock: Callable[..., Result]) -> None:
    assert topic.load().error is None
    shutil.rmtree(table(topic, "orders").uri)
    records = results(penstock("verify", "clicks", "--tables", "--json"), code=5)
    assert [own["proven"] for own in records] == [True, False, True]
    assert "there is no table" in records[1]["problems"][0]


def test_the_own_table_of_a_topic_names_its_tables(topic: TypedTopic, tmp_path: Path) -> None:
    with_tables(topic, others="fail", names={"click": "main", **TABLES["names"]})
    topic.fake.logs = {0: batch(["click", "order", "payment"])}
    assert topic.load().error is None
    kept = tmp_path / "kept"
    shutil.copytree(table(topic, "orders").uri, kept)
    with_tables(topic, names={"click": "main", **TABLES["names"], "refund": "refunds"})
    append(topic, ["refund"])
    assert topic.load().error is None
    # A load was killed before it committed to this table, which knows nothing of the new one.
    shutil.rmtree(table(topic, "orders").uri)
    shutil.copytree(kept, table(topic, "orders").uri)
    names = [other.where.topic for other in other_tables(table(topic, "orders"))]
    assert names == ["clicks", "clicks/payments", "clicks/refunds"]
    shutil.rmtree(table(topic).uri)
    assert [other.where.topic for other in other_tables(table(topic, "orders"))] == names[:2]
