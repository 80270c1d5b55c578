"""Dagster as a user sees it: the daemon discovers and loads topics, and the pages show the numbers of the ledgers."""

import os
import shutil
from pathlib import Path

import dagster as dg
import pytest
from pipelines.defs.partitions import RANGE_END, RANGE_START

from pipelines.maintenance.history import HistoryEntry, history
from resources.lake import Lake
from tests.live import numbered
from tests.ui.browser import Browser
from tests.ui.stand import ASSET, PAGE, SOURCE, SOURCE_PAGE, Stand
from tests.ui.waiting import until

pytestmark = [pytest.mark.ui, pytest.mark.spark, pytest.mark.zookeeper, pytest.mark.timeout(1800)]

LOAD = "load__main__topics"


def loads_of(stand: Stand, topic: str) -> list[HistoryEntry]:
    """The loads in the ledger of a topic's table, the newest first."""
    return [entry for entry in history(stand.table(topic)) if entry.what == "load"]


def materialize(browser: Browser) -> None:
    """Open the dialog that materializes the asset, and choose all of its partitions."""
    browser.open(PAGE, "Materialize…", "rows_per_second")
    browser.click("Materialize…")
    browser.shows("Launch backfill")
    browser.click("All")


def test_the_daemon_loads_the_topics_of_a_tick_in_one_run(stand: Stand) -> None:
    (run,) = stand.instance.get_runs(dg.RunsFilter(job_name=LOAD))[-1:]
    assert run.is_success
    assert (run.tags[RANGE_START], run.tags[RANGE_END]) == ("~50age.~56iews", "clicks")
    assert run.tags["dagster/sensor_name"] == "new_topics__main"
    assert sum(stand.rows("clicks")) == stand.delta("clicks").to_pyarrow_table().num_rows


def test_a_topic_published_later_becomes_a_partition_with_its_table(stand: Stand, browser: Browser) -> None:
    stand.publish("later", numbered(100))
    stand.wait_for("later")
    assert stand.values("later") == sorted(numbered(100))
    browser.open(f"{PAGE}?view=partitions", "later", "clicks", "~50age.~56iews")


def test_the_page_of_an_asset_shows_its_description_and_its_loads(browser: Browser) -> None:
    text = browser.open(PAGE, "One Delta table per Kafka topic", "rows_per_second", "new_topics__main")
    assert "kafka / main / topics" in text
    assert "sign up" not in text.lower()


def test_the_page_of_a_partition_shows_the_numbers_of_the_ledger(stand: Stand, browser: Browser) -> None:
    text = browser.open(f"{PAGE}?view=partitions&partition=clicks", "table_version", "Materialized")
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
    save_picture(browser)


def save_picture(browser: Browser) -> None:
    """Copy the last screenshot to the folder PENSTOCK_PICTURES, if it is set. The README shows this picture."""
    if folder := os.environ.get("PENSTOCK_PICTURES"):
        shutil.copy(max(browser.pictures.iterdir()), Path(folder) / "ui.png")


def test_the_events_of_the_asset_name_their_partitions(browser: Browser) -> None:
    browser.open(f"{PAGE}?view=events", "clicks", "~50age.~56iews", "materialized in run")


def test_the_page_of_a_run_shows_its_log(stand: Stand, browser: Browser) -> None:
    (run,) = stand.instance.get_runs(dg.RunsFilter(job_name=LOAD))[-1:]
    first = loads_of(stand, "clicks")[-1]
    summary = f"clicks: {first.rows} rows, version {first.commit.version}"
    browser.open(f"/runs/{run.run_id}?logs=clicks", summary)


def test_the_page_of_every_check_shows_its_result(stand: Stand, browser: Browser) -> None:
    browser.open(f"{PAGE}?view=checks", "Execute all")
    browser.click("Execute all")
    name = dg.AssetCheckKey(ASSET, "lag")
    storage = stand.instance.event_log_storage
    until(lambda: storage.get_asset_check_execution_history(name, limit=1), "the check")
    stand.wait_for_runs()
    proofs = [stand.proof(topic) for topic in Lake.of(stand.settings).topics("main")]
    rows = sum(partition.rows for proof in proofs for partition in proof.partitions)
    text = browser.open(f"{PAGE}?view=checks&checkDetail=offsets_covered", "tables proven", f" rows {rows} ")
    assert "missing 0" in text
    assert "duplicates 0" in text
    assert "Every committed offset is in its table exactly once" in text
    browser.open(f"{PAGE}?view=checks&checkDetail=lag", "No table is further behind", "problems 0")
    browser.open(f"{PAGE}?view=checks&checkDetail=freshness", "No record waits longer", "most_late_seconds")
    browser.open(f"{PAGE}?view=checks&checkDetail=retention_race", "limits.retention_left", "problems 0")


def test_the_observation_of_the_source_asset_shows_the_status_of_topics(stand: Stand, browser: Browser) -> None:
    browser.open(SOURCE_PAGE, "The topics of the group topics in the Kafka cluster main")
    browser.click("Observe")
    until(lambda: stand.instance.fetch_observations(SOURCE, limit=1).records, "an observation")
    stand.wait_for_runs()
    text = browser.open(SOURCE_PAGE, "most_late_seconds", "count", "clicks")
    assert "topic state lag late_seconds hours_until_lost problem" in text


def test_the_launchpad_shows_the_config_with_its_defaults(browser: Browser) -> None:
    browser.open(PAGE, "Materialize…", "rows_per_second")
    browser.click_menu_of("Materialize…")
    browser.click("Open launchpad")
    text = browser.shows("lake__main__topics:", "on_expired: settings", 'since: ""')
    assert 'until: ""' in text
    browser.click("since")
    browser.shows("Also load older records that the brokers still hold", "Load nothing from this point on")


def test_a_click_loads_all_topics_in_one_run(stand: Stand, browser: Browser) -> None:
    before = {run.run_id for run in stand.instance.get_runs()}
    stand.publish("clicks", numbered(200, 3000))
    materialize(browser)
    browser.click("Launch backfill")
    until(lambda: {run.run_id for run in stand.instance.get_runs()} - before, "the backfill's run")
    stand.wait_for_runs()
    (run,) = (run for run in stand.instance.get_runs() if run.run_id not in before and "dagster/backfill" in run.tags)
    assert run.is_success
    assert set(numbered(200, 3000)) <= set(stand.values("clicks"))
    browser.open(f"/runs/{run.run_id}", "Success", "lake__main__topics")


def test_a_backfill_with_config_loads_the_chosen_partitions(stand: Stand) -> None:
    """Send the mutation that the button "Launch backfill" sends, with the content of its config editor."""
    stand.publish("Page.Views", numbered(50, 500))
    stand.publish("clicks", numbered(50, 9000))
    run_config = {"ops": {"lake__main__topics": {"config": {"since": "earliest", "on_expired": "skip"}}}}
    backfill = stand.backfill(["clicks", "~50age.~56iews"], run_config)
    until(
        lambda: stand.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill})), "the run of the backfill"
    )
    stand.wait_for_runs()
    (run,) = stand.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill}))
    assert run.is_success
    assert run.run_config["ops"] == run_config["ops"]
    assert set(numbered(50, 9000)) <= set(stand.values("clicks"))
    assert stand.values("Page.Views") == sorted(numbered(550))


def test_the_page_of_the_sensor_shows_its_requests(browser: Browser) -> None:
    # The page lists only the newest ticks. Without the skipped ones, the tick that requested the run is among them.
    page = "/locations/penstock/sensors/new_topics__main?status=success"
    text = browser.open(page, "1 run requested", "(2 partitions created)")
    assert "Adds topics that are new in the cluster main, and loads them." in text
    assert "Running" in text


def test_the_schedules_exist_and_run(browser: Browser) -> None:
    text = browser.open("/automation", "load__main__topics", "watch__main__topics", "verify__main__topics")
    assert "lost_runs" in text
