"""Dagster as a person uses it: its daemon finds and loads topics, its pages show them."""

import pytest
from deltalake import DeltaTable

from pipelines.partitions import NAME, RANGE_END, RANGE_START
from tests.live import numbered
from tests.ui.stand import Browser, Stand

pytestmark = [pytest.mark.ui, pytest.mark.spark, pytest.mark.zookeeper]


def test_the_daemon_loads_the_topics_of_a_tick_in_one_run(stand: Stand) -> None:
    (run,) = stand.instance.get_runs(filters=None)[-1:]
    assert run.is_success
    assert (run.tags[RANGE_START], run.tags[RANGE_END]) == ("main/~50age.~56iews", "main/clicks")
    assert run.tags["dagster/sensor_name"] == "new_topics"
    assert DeltaTable(stand.live.lake / "main" / "clicks").to_pyarrow_table().num_rows == 3000


def test_a_topic_published_later_becomes_a_partition_with_its_table(stand: Stand, browser: Browser) -> None:
    stand.live.publish("later", numbered(100))
    stand.wait_for("main/later")
    assert "main/later" in stand.instance.get_dynamic_partitions(NAME)
    assert DeltaTable(stand.live.lake / "main" / "later").to_pyarrow_table().num_rows == 100
    browser.open("/assets/topic_table?view=partitions", "main/later", "main/clicks", "main/~50age.~56iews")


def test_the_assets_page_tells_what_it_is_and_what_was_loaded(browser: Browser) -> None:
    text = browser.open("/assets/topic_table", "One Delta table per Kafka topic", "rows_per_second", "new_topics")
    assert "Every 15 minutes" in text
    assert "sign up" not in text.lower()


def test_a_partitions_page_shows_numbers_and_a_table_of_broker_partitions(stand: Stand, browser: Browser) -> None:
    text = browser.open("/assets/topic_table?view=partitions&partition=main%2Fclicks", "table_version", "Materialized")
    lines = text.splitlines()
    assert "broker partition start end rows lag seconds gaps" in lines
    rows = stand.rows("main/clicks")  # more than one if the schedule came in between
    assert sum(rows) == 3000
    assert lines[lines.index("rows") + 1] == str(rows[0])
    assert lines[lines.index("topic") + 1] == "clicks"


def test_the_events_of_the_asset_name_their_partitions(browser: Browser) -> None:
    browser.open("/assets/topic_table?view=events", "main/clicks", "main/~50age.~56iews", "materialized in run")


def test_the_check_of_a_run_over_several_topics_has_passed(browser: Browser) -> None:
    text = browser.open("/assets/topic_table?view=checks", "offsets_covered", "tables proven", "Passed", "duplicates")
    assert "Skipped" not in text
    assert "Every committed offset is in its table exactly once" in text


def test_the_sensors_page_shows_what_it_asked_for(browser: Browser) -> None:
    text = browser.open("/locations/penstock/sensors/new_topics", "1 run requested", "(2 partitions created)")
    assert "Adds topics that are new in the registries, and loads them." in text
    assert "Running" in text
