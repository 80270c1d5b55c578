"""Partition keys: one per topic, and back."""

import dagster as dg
import pytest

from pipelines.defs.partitions import key_of, known_keys, run_tags, topic_of
from tests.pipelines.defs.declared import GROUP

NAMES = ["clicks", "a.b", "a-b", "a...b", "A", "a", "_a", ".", "..", "x" * 249, "X" * 249, "a b", "a/b", "ä"]


@pytest.mark.parametrize("name", NAMES)
def test_a_key_gives_back_its_topic(name: str) -> None:  # fault O06
    assert topic_of(key_of(name)) == name


def test_no_two_topics_share_a_key_nor_differ_by_case_alone() -> None:  # fault O06
    keys = {key_of(name).lower() for name in NAMES}
    assert len(keys) == len(NAMES)


def test_dagster_takes_every_key(instance: dg.DagsterInstance) -> None:  # fault O06
    keys = [key_of(name) for name in NAMES]
    request = GROUP.partitions.build_add_request(keys)
    instance.add_dynamic_partitions(GROUP.partitions_name, list(request.partition_keys))
    assert known_keys(instance, GROUP) == keys


@pytest.mark.parametrize("key", ["Clicks", "~4", "~zz", "a~2eb", "a/b"])
def test_a_text_that_is_not_a_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="is not the encoded name of a topic"):
        topic_of(key)


def test_a_run_takes_the_keys_of_its_range_in_the_order_of_their_addition(instance: dg.DagsterInstance) -> None:
    instance.add_dynamic_partitions(GROUP.partitions_name, ["z", "b"])
    instance.add_dynamic_partitions(GROUP.partitions_name, ["a", "b", "y", "c"])
    loaded_keys: list[str] = []

    @dg.asset(partitions_def=GROUP.partitions, backfill_policy=dg.BackfillPolicy.single_run())
    def taking(context: dg.AssetExecutionContext) -> None:
        loaded_keys.extend(context.partition_keys)

    assert dg.materialize([taking], instance=instance, tags=run_tags(["b", "y"])).success
    assert loaded_keys == ["b", "a", "y"]
