"""The parts of asset keys: the names of topics, one per topic, and back."""

import re

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.defs.catalog.catalog import topic_schedules
from pipelines.defs.catalog.topic_keys import key_name
from tests.pipelines.defs.declared import catalog, defs_of, key

PLAIN = ["clicks", "a.b", "a-b", "a_b", "A", "a", "_a", "Order.Events", "x" * 249, "X" * 249]
REPLACED = {"a b": "a_x20_b", "a/b": "a_x2f_b", "ä": "_xe4_", "..": "_x2e__x2e_", "a_x20_b": "a_x5f_x20_b"}


@pytest.mark.parametrize("name", PLAIN)
def test_a_usual_name_is_itself(name: str) -> None:
    assert key_name(name) == name


@pytest.mark.parametrize(("name", "part"), REPLACED.items())
def test_other_characters_are_replaced_readably(name: str, part: str) -> None:  # fault O06
    assert key_name(name) == part


@given(st.text(st.sampled_from("a.x_20-~ 5f") | st.characters(codec="utf-8"), min_size=1))
def test_a_key_gives_back_its_topic(name: str) -> None:  # fault O06
    topic = re.sub(r"_x([0-9a-f]+)_", lambda match: chr(int(match[1], 16)), key_name(name))
    assert topic == name


def test_dagster_takes_all_names_at_once_also_those_that_it_does_not_tell_apart() -> None:  # fault O06
    names = [*PLAIN, *REPLACED]
    (schedule,) = topic_schedules(catalog(*names))
    assert sorted(len(topics) for _, topics in schedule.buckets()) == [1, 1, len(names) - 2]
    defs = defs_of(*names)
    dg.Definitions.validate_loadable(defs)
    tables = {asset for asset in defs.resolve_asset_graph().get_all_asset_keys() if asset.path[0] == "lake"}
    assert tables == {key(name) for name in names}
    for name in names:
        (parent,) = defs.resolve_asset_graph().get(key(name)).parent_keys
        assert parent == dg.AssetKey(["kafka", "main", key_name(name)])


def test_a_topic_needs_a_name() -> None:
    with pytest.raises(ValueError, match="has no name"):
        key_name("")
