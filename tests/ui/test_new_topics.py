"""A new topic becomes an asset without a person: in one tick, if the daemon and the webserver share a code server.

test_kills.py tests a daemon and a webserver that do not share one.
"""

from dataclasses import replace

import pytest

from tests.live import numbered
from tests.ui.browser import Browser
from tests.ui.modern import FRESH
from tests.ui.stand import Stand
from tests.ui.waiting import until

pytestmark = [pytest.mark.ui, pytest.mark.zookeeper, pytest.mark.timeout(1800)]

SENSOR = f"new_topics__{FRESH}"


def test_one_tick_defines_a_new_topic_and_requests_its_run(small_stand: Stand) -> None:
    fresh = replace(small_stand, cluster=FRESH)
    for topic in ("first", "Second.topic"):  # the very first topic, and one while others are known
        fresh.publish(topic, numbered(10))
        fresh.wait_for(topic)
        until(lambda topic=topic: topic in fresh.defined(), f"the asset of {topic} in the webserver")  # type: ignore[misc]
        (tick,) = [tick for tick in fresh.ticks(SENSOR) if tick["runIds"]][:1]
        assert tick["status"] == "SUCCESS"
        run = fresh.run(tick["runIds"][0])
        assert run.asset_selection == {fresh.asset(topic)}
        assert run.tags["topics"] == topic
        assert fresh.values(topic) == sorted(numbered(10))
    failed = [tick["error"] for tick in fresh.ticks(SENSOR) if tick["status"] == "FAILURE"]
    assert failed == []


def test_a_topic_published_later_becomes_an_asset_with_its_table(small_stand: Stand, small_browser: Browser) -> None:
    small_stand.publish("Later.Topic", numbered(100))
    small_stand.wait_for("Later.Topic")
    assert small_stand.values("Later.Topic") == sorted(numbered(100))
    small_browser.open(
        small_stand.page("Later.Topic"), "rows_per_second", "The Delta table of the Kafka topic Later.Topic"
    )
