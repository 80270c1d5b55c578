"""Partition keys: one per topic, and back."""

import dagster as dg
import pytest

from pipelines.partitions import NAME, cluster_of, key_of, known_keys, parse_key, run_tags, topics

NAMES = ["clicks", "a.b", "a-b", "a...b", "A", "a", "_a", ".", "..", "x" * 249, "X" * 249, "a b", "a/b", "ä"]


@pytest.mark.parametrize("name", NAMES)
def test_a_key_gives_back_its_cluster_and_topic(name: str) -> None:  # O06
    assert parse_key(key_of("main", name)) == ("main", name)
    assert cluster_of(key_of("main", name)) == "main"


def test_no_two_topics_share_a_key_nor_differ_by_case_alone() -> None:  # O06
    keys = {key_of("main", name).lower() for name in NAMES}
    assert len(keys) == len(NAMES)


def test_dagster_takes_every_key(instance: dg.DagsterInstance) -> None:  # O06
    keys = [key_of("main", name) for name in NAMES]
    request = topics.build_add_request(keys)
    instance.add_dynamic_partitions(NAME, list(request.partition_keys))
    assert known_keys(instance) == keys


@pytest.mark.parametrize("key", ["clicks", "main/Clicks", "main/", "main/~4", "main/~zz", "main/a~2eb"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"stands for no topic|is not <cluster>/<topic>"):
        parse_key(key)


def test_a_run_takes_the_keys_from_first_to_last_in_the_order_of_adding(instance: dg.DagsterInstance) -> None:
    instance.add_dynamic_partitions(NAME, ["main/z", "main/b"])
    instance.add_dynamic_partitions(NAME, ["main/a", "main/b", "main/y", "main/c"])
    taken: list[str] = []

    @dg.asset(partitions_def=topics, backfill_policy=dg.BackfillPolicy.single_run())
    def taking(context: dg.AssetExecutionContext) -> None:
        taken.extend(context.partition_keys)

    tags = run_tags(["main/b", "main/y"])
    assert dg.materialize([taking], instance=instance, tags=tags).success
    assert taken == ["main/b", "main/a", "main/y"]
