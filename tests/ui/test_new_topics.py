"""A new topic becomes an asset without a person: in one tick with a code server, a little later without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import numbered
from tests.ui.modern import modern_cluster
from tests.ui.stand import Stand, dagster_on
from tests.ui.waiting import until

pytestmark = [pytest.mark.ui, pytest.mark.timeout(1800)]

SENSOR = "new_topics__main"


@pytest.fixture
def code_server(tmp_path: Path) -> Iterator[Stand]:
    """A daemon and a webserver that share a code server, as `make demo UI=1` starts them. No topic exists."""
    with modern_cluster(tmp_path) as settings, dagster_on(tmp_path, settings, shared_code=True) as stand:
        yield stand


def test_one_tick_defines_a_new_topic_and_requests_its_run(code_server: Stand) -> None:
    stand = code_server
    for topic in ("first", "Second.topic"):  # the very first topic, and one while others are known
        stand.publish(topic, numbered(10))
        stand.wait_for(topic)
        until(lambda topic=topic: topic in stand.defined(), f"the asset of {topic} in the webserver")  # type: ignore[misc]
        (tick,) = [tick for tick in stand.ticks(SENSOR) if tick["runIds"]][:1]
        assert tick["status"] == "SUCCESS"
        run = stand.run(tick["runIds"][0])
        assert run.asset_selection == {stand.asset(topic)}
        assert run.tags["penstock/topics"] == topic
        assert stand.values(topic) == sorted(numbered(10))
    failed = [tick["error"] for tick in stand.ticks(SENSOR) if tick["status"] == "FAILURE"]
    assert failed == []


@pytest.fixture
def own_code(tmp_path: Path) -> Iterator[Stand]:
    """A daemon and a webserver that each start a code server, as with workspace.yaml."""
    with modern_cluster(tmp_path) as settings, dagster_on(tmp_path, settings) as stand:
        text = settings.read_text()
        settings.write_text(f'webserver = "{stand.url}"\n{text}')
        yield stand


def test_without_a_code_server_the_webserver_is_asked_and_the_daemon_follows(own_code: Stand) -> None:
    own_code.publish("first", numbered(10))
    until(lambda: "first" in own_code.defined(), "the asset in the webserver")
    own_code.wait_for("first")
    assert own_code.values("first") == sorted(numbered(10))
    ticks = own_code.ticks(SENSOR)
    assert not [tick["error"] for tick in ticks if tick["status"] == "FAILURE"]
    reasons = [tick["skipReason"] or "" for tick in ticks]
    # Without the sensor the webserver never loads them. On a busy machine this takes longer than the sensor waits.
    assert any(reason.startswith("new topics: 1; ") for reason in reasons), reasons
