"""Dagster as a user sees it: the daemon discovers and loads topics, and the pages show the numbers of the ledgers."""

import os
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import pytest

from pipelines.maintenance.history import HistoryEntry, history
from tests.live import numbered
from tests.ui.browser import Browser
from tests.ui.many import CLUSTER
from tests.ui.stand import MAIN, Stand
from tests.ui.waiting import until

pytestmark = [pytest.mark.ui, pytest.mark.spark, pytest.mark.zookeeper, pytest.mark.timeout(1800)]

LOAD = "load__main__topics"
PAGE = "/assets/lake/main/clicks"


def loads_of(stand: Stand, topic: str) -> list[HistoryEntry]:
    """The loads in the ledger of a topic's table, the newest first."""
    return [entry for entry in history(stand.table(topic)) if entry.what == "load"]


def test_the_daemon_loads_the_topics_of_a_tick_in_one_run(stand: Stand) -> None:
    (run,) = stand.instance.get_runs(dg.RunsFilter(job_name=LOAD))[-1:]
    assert run.is_success
    assert run.asset_selection == {stand.asset("clicks"), stand.asset("Page.Views")}
    assert run.tags["topics"] == "Page.Views, clicks"
    assert run.tags["dagster/sensor_name"] == "new_topics__main"
    assert sum(stand.rows("clicks")) == stand.delta("clicks").to_pyarrow_table().num_rows


def test_the_page_of_an_asset_shows_its_description_and_its_group(browser: Browser) -> None:
    text = browser.open(PAGE, "The Delta table of the Kafka topic clicks", "rows_per_second")
    assert "main" in text
    assert "sign up" not in text.lower()


def test_the_lineage_reads_topic_then_table(browser: Browser) -> None:
    group_of_the_topic = " kafka_main "  # fault F17
    browser.open(f"{PAGE}?view=lineage", "clicks", group_of_the_topic, "Kafka", "Delta Lake", " Passed ")
    save_picture(browser, "lineage")


def test_the_graph_of_all_assets_has_the_groups_of_both_clusters(browser: Browser) -> None:
    browser.open(
        "/asset-groups", "Global asset lineage", f" kafka_{MAIN} ", f" {MAIN} ", f" {CLUSTER} ", "Materialize all"
    )


def test_the_catalog_lists_topics_and_tables(browser: Browser) -> None:
    browser.open("/assets", "kafka / main / clicks", "The topic Page.Views in the Kafka cluster main.")
    selection = quote('key:"lake/main/*"')
    text = browser.open(f"/assets?asset-selection={selection}", "lake / main / clicks", "lake / main / Page.Views")
    assert "kafka / main / clicks" not in text


def test_the_search_finds_a_topic_by_the_name_that_people_type(browser: Browser) -> None:
    browser.open(PAGE, "The Delta table of the Kafka topic clicks")
    browser.click("Search")
    browser.type("page.v")
    browser.shows("kafka / main / Page.Views", "lake / main / Page.Views")


def test_the_page_of_an_asset_shows_the_numbers_of_the_ledger(stand: Stand, browser: Browser) -> None:
    text = browser.open(f"{PAGE}?view=events", "rows_per_second", "Materialized in run")
    assert "broker partition start end rows lag_before lag seconds source gaps " in text
    newest, *_ = loads_of(stand, "clicks")
    numbers = {"rows": newest.rows, "bytes": newest.bytes, "files": newest.files}
    for name, value in {**numbers, "table_version": newest.commit.version, "topic": "clicks"}.items():
        assert f" {name} {value} " in text
    for id_ in {committed.partition for committed in newest.ranges}:
        ranges = [committed for committed in newest.ranges if committed.partition == id_]
        start = min(committed.offsets.start for committed in ranges)
        stop = max(committed.offsets.stop for committed in ranges)
        assert f" {id_.broker} {id_.partition} {start} {stop} {sum(committed.rows for committed in ranges)} " in text


def test_the_page_of_a_run_shows_its_log(stand: Stand, browser: Browser) -> None:
    (run,) = stand.instance.get_runs(dg.RunsFilter(job_name=LOAD))[-1:]
    first = loads_of(stand, "clicks")[-1]
    summary = f"clicks: {first.rows} rows, version {first.commit.version}"
    browser.open(f"/runs/{run.run_id}?logs=clicks", summary)


def test_the_page_of_every_check_shows_its_result(stand: Stand, browser: Browser) -> None:
    browser.open(f"{PAGE}?view=checks", "Execute all")
    browser.click("Execute all")
    name = dg.AssetCheckKey(stand.asset("clicks"), "freshness")
    storage = stand.instance.event_log_storage
    until(lambda: storage.get_asset_check_execution_history(name, limit=1), "the check")
    stand.wait_for_runs()
    rows = sum(partition.rows for partition in stand.proof("clicks").partitions)
    text = browser.open(f"{PAGE}?view=checks&checkDetail=coverage", "the table is proven", f" rows {rows} ")
    assert "missing 0" in text
    assert "duplicates 0" in text
    assert "Every committed offset is in the table exactly once" in text
    save_picture(browser, "checks")
    browser.open(f"{PAGE}?view=checks&checkDetail=freshness", "No record waits longer", "lag_seconds")
    browser.open(f"{PAGE}?view=checks&checkDetail=retention_race", "limits.retention_left")


def test_the_launchpad_shows_the_config_with_its_defaults(browser: Browser) -> None:
    browser.open(PAGE, "Materialize", "rows_per_second")
    browser.click_menu_of("Materialize")
    browser.click("Open launchpad")
    text = browser.shows("penstock_load__main__topics:", "on_expired: settings", 'since: ""')
    assert 'until: ""' in text
    browser.click("since")
    browser.shows("Also load older records that the brokers still hold", "Load nothing from this point on")


def test_a_click_loads_the_topic(stand: Stand, browser: Browser) -> None:
    before = {run.run_id for run in stand.instance.get_runs()}
    stand.publish("clicks", numbered(200, 3000))
    browser.open(PAGE, "Materialize", "rows_per_second")
    browser.click("Materialize")
    until(lambda: {run.run_id for run in stand.instance.get_runs()} - before, "the run")
    stand.wait_for_runs()
    (run,) = (run for run in stand.instance.get_runs() if run.run_id not in before)
    assert run.is_success
    assert run.tags["topics"] == "clicks"
    assert set(numbered(200, 3000)) <= set(stand.values("clicks"))
    browser.open(f"/runs/{run.run_id}", "Success", "penstock_load__main__topics")
    browser.click("View tags and config")
    assert "penstock_worker" not in browser.shows("topics:")


def test_a_run_with_config_loads_the_chosen_topics(stand: Stand) -> None:
    """Send the mutation that the launchpad sends, with the content of its config editor."""
    stand.publish("Page.Views", numbered(50, 500))
    stand.publish("clicks", numbered(50, 9000))
    config = {"ops": {"penstock_load__main__topics": {"config": {"since": "earliest", "on_expired": "skip"}}}}
    run_id = stand.launch(LOAD, ["clicks", "Page.Views"], config=config)
    stand.wait_for_runs()
    run = stand.run(run_id)
    assert run.is_success
    assert run.run_config["ops"] == config["ops"]
    assert set(numbered(50, 9000)) <= set(stand.values("clicks"))
    assert stand.values("Page.Views") == sorted(numbered(550))


def test_the_plots_of_an_asset_show_its_loads_and_no_other_topic(stand: Stand, browser: Browser) -> None:
    browser.open(PAGE, "rows_per_second", "Plots")
    browser.click("Plots")
    browser.shows("Row count", "bad_records", "lag_seconds", "rows_per_second")
    until(lambda: browser.plots() >= 10, "the plots")
    browser.scroll_to("Metadata")
    save_picture(browser, "ui")
    plotted = stand.ask(_PLOTTED, key={"path": stand.asset("clicks").path})["assetOrError"]["assetMaterializations"]
    row_counts = [
        entry["intValue"] for event in plotted for entry in event["metadataEntries"] if entry["label"] == "rows"
    ]
    assert row_counts == [entry.rows for entry in loads_of(stand, "clicks") if entry.rows]


def save_picture(browser: Browser, name: str) -> None:
    """Save a screenshot in the folder PENSTOCK_PICTURES, if it is set. README.md and docs/dagster.md show them."""
    if folder := os.environ.get("PENSTOCK_PICTURES"):
        browser.driver.save_screenshot(str(Path(folder) / f"{name}.png"))


def test_the_page_of_the_sensor_shows_its_requests(browser: Browser) -> None:
    # The page lists only the newest ticks. Without the skipped ones, the tick that requested the run is among them.
    page = "/locations/penstock/sensors/new_topics__main?status=success"
    text = browser.open(page, "1 run requested")
    assert "Adds topics that are new in the cluster main, and loads them." in text
    assert "Running" in text


def test_the_schedules_exist_and_run(browser: Browser) -> None:
    text = browser.open("/automation", "load__main__topics", "watch__main__topics", "verify__main__topics")
    assert "lost_runs" in text


_PLOTTED = """
query ($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset { assetMaterializations(limit: 100) {
  metadataEntries { label ... on IntMetadataEntry { intValue } } } } } }
"""
