"""Sentences of `penstock config check` about what a cluster does not show."""

import pytest

from kafka_io.model import UNKNOWN_INCARNATION, TopicEntry
from pipelines.cli.config_tests.cluster import lack_ids


@pytest.mark.parametrize(
    ("incarnation", "lacks"), [(UNKNOWN_INCARNATION, True), ("7", False), ("AAAAAAAAAAAAAAAAAAAABw", False)]
)
def test_a_cluster_whose_topics_have_no_id_is_mentioned(incarnation: str, lacks: bool) -> None:  # fault P08
    assert lack_ids([TopicEntry(name="clicks", incarnation=incarnation, partitions=())]) is lacks
