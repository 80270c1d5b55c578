"""The checks of a topic: in the run of a load, in runs of their own, and in the runs that watch topics."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.defs.catalog.checks import Verdict, judge_erasures, judge_proof, judge_schemas
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.verify.verify import PartitionProof, Proof
from resources.settings.schedules import CheckLimits
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.live import LiveCluster, numbered
from tests.pipelines.defs.declared import CLUSTERS, defs_of, job, key, observed, run, verdicts


def lose_a_file(live: LiveCluster, topic: str) -> None:
    """Delete a data file of the table without a commit."""
    table = DeltaTable(live.lake / "main" / topic)
    (live.lake / "main" / topic / table.file_uris()[0]).unlink()


def state_of(instance: dg.DagsterInstance, topic: str, check: str) -> bool:
    """Whether the newest evaluation of a check passed, as the page of the asset shows it."""
    history = instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(key(topic), check), limit=1)
    event = history[0].event.dagster_event if history[0].event else None
    assert event is not None
    return event.asset_check_evaluation_data.passed


@pytest.mark.zookeeper
def test_a_run_verifies_each_table_that_it_loaded(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(100))
    checks = verdicts(run(instance, ["clicks", "views"]))
    assert {topic: set(by_name) for topic, by_name in checks.items()} == {
        "clicks": {"coverage", "gaps"},
        "views": {"coverage", "gaps"},
    }
    coverage = checks["views"]["coverage"]
    assert (coverage.passed, coverage.description) == (True, "the table is proven")
    assert coverage.metadata["rows"].value == 100


@pytest.mark.zookeeper
def test_a_proof_that_failed_stays_failed_while_other_topics_are_loaded(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:  # audit E3
    for name in ("clicks", "views"):
        configured.publish(name, numbered(100))
    assert run(instance, ["clicks", "views"]).success
    lose_a_file(configured, "views")
    check = verdicts(job(instance, "verify"))["views"]["coverage"]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "is missing or truncated" in str(check.description)
    rows, missing = (check.metadata[name].value for name in ("rows", "missing"))
    assert isinstance(rows, int)
    assert isinstance(missing, int)
    assert rows + missing == 100
    configured.publish("clicks", numbered(10, start=100))
    assert run(instance, ["clicks"]).success
    assert state_of(instance, "clicks", "coverage")
    assert not state_of(instance, "views", "coverage")


@pytest.mark.zookeeper
def test_a_run_of_verify_judges_every_table(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    run(instance, ["clicks", "views"])
    lose_a_file(configured, "views")
    log = configured.lake / "main" / "clicks" / "_delta_log"
    max(log.glob("*.json")).write_text("{")  # this table cannot be read at all, and views is still judged (fault U03)
    checks = verdicts(job(instance, "verify"))
    assert {topic: by_name["coverage"].passed for topic, by_name in checks.items()} == {"clicks": False, "views": False}
    assert {topic: by_name["erasures"].passed for topic, by_name in checks.items()} == {"clicks": False, "views": True}


@pytest.mark.zookeeper
def test_a_user_executes_the_checks_of_one_topic(instance: dg.DagsterInstance, configured: LiveCluster) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    assert run(instance, ["clicks", "views"]).success
    defs = defs_of("clicks", "views")
    keys = [check for check in defs.resolve_asset_graph().asset_check_keys if check.asset_key == key("clicks")]
    selection = dg.AssetSelection.checks(*keys)
    asked = dg.Definitions.merge(defs, dg.Definitions(jobs=[dg.define_asset_job("asked", selection=selection)]))
    checks = verdicts(asked.resolve_job_def("asked").execute_in_process(instance=instance))
    assert {topic: sorted(by_name) for topic, by_name in checks.items()} == {
        "clicks": ["coverage", "erasures", "freshness", "gaps", "open_transactions", "retention_race"]
    }
    assert all(check.passed for check in checks["clicks"].values())


@pytest.mark.zookeeper
def test_topics_are_watched_and_only_changes_become_events(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    configured.publish("clicks", numbered(10))
    assert run(instance, ["clicks"]).success
    first = verdicts(job(instance, "watch"))
    assert first["clicks"].keys() == {"freshness", "retention_race", "open_transactions"}
    assert all(check.passed for check in first["clicks"].values())
    assert first["clicks"]["freshness"].metadata["lag"].value == 0
    assert verdicts(job(instance, "watch")) == {}


@pytest.mark.zookeeper
def test_a_topic_further_behind_than_the_limit_is_a_warning_of_its_own_check(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:
    for name in ("clicks", "views"):
        configured.publish(name, numbered(10))
    assert run(instance, ["clicks"]).success
    limits = CheckLimits(lag=5)
    configured.configure("limits = { lag = 5 }")
    defs = defs_of("clicks", "views", settings=Settings(lake="/nowhere", clusters=CLUSTERS, limits=limits))
    result = defs.resolve_job_def("watch__main__topics").execute_in_process(instance=instance)
    checks = verdicts(result)
    assert observed(result).keys() == {"views"}  # only topics that are behind
    assert observed(result)["views"]["lag"] == checks["views"]["lag"].metadata["lag"].value
    assert checks["clicks"]["lag"].passed
    lag = checks["views"]["lag"]
    assert (lag.passed, lag.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "offsets behind, more than the limit of 5" in str(lag.description)
    assert isinstance(lag.metadata["lag"].value, int)


def test_gaps_are_a_warning_only_where_records_were_passed_over() -> None:
    def proof(**gaps: int) -> Proof:
        offsets = OffsetRange(BrokerPartition(0, 1), 0, 9)
        part = PartitionProof(offsets=offsets, incarnation="7", rows=3, gaps=gaps, missing=0, duplicates=0)
        return Proof(topic="a", table="t", partitions=(part, part))

    assert judge_proof("gaps", proof(compacted=3, control=1, aborted=2, empty=7)).violation is None
    on_purpose = judge_proof("gaps", proof(compacted=3, erased=3, filtered=1, retired=2))
    assert (on_purpose.violation, on_purpose.metadata) == (None, {"erased": 6, "filtered": 2, "retired": 4})
    violation = judge_proof("gaps", proof(expired=3, control=1)).violation
    assert violation == (dg.AssetCheckSeverity.WARN, "6 offsets of the topic have no row (expired: 6)")


def test_an_erasure_is_a_warning_before_its_deadline_and_an_error_after_it() -> None:  # fault Y09
    now, day = datetime(2026, 6, 8, tzinfo=UTC), timedelta(days=1)

    def verdict(*ages: float) -> Verdict:
        return judge_erasures([now - age * day for age in ages], 8, now)

    assert verdict().violation is None
    assert (verdict(6, 1).violation, verdict(6, 1).metadata["waiting"]) == (None, 2)
    near, over = verdict(6.5, 1).violation, verdict(9).violation
    assert near is not None
    assert over is not None
    assert (near[0], over[0]) == (dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR)
    assert "of 2 erasures still exist, and housekeeping.erase_days ends in 1 d 12 h" in near[1]
    assert "of 1 erasure still exist, and housekeeping.erase_days ended before 1 d: `penstock clean" in over[1]


@pytest.mark.zookeeper
def test_a_run_of_verify_judges_the_files_of_erasures(
    instance: dg.DagsterInstance, configured: LiveCluster
) -> None:  # fault Y09
    configured.publish("clicks", numbered(10))
    run(instance, ["clicks"])
    assert verdicts(job(instance, "verify"))["clicks"]["erasures"].passed
    table = DeltaLakeTable.of(Lake(root=str(configured.lake)), "main", "clicks")
    condition = parse_condition("offset >= 0")
    assert erase(EraseRequest(table=table, condition=condition, run="r", name="zelda")).rows == 10
    waiting = verdicts(job(instance, "verify"))["clicks"]["erasures"]
    assert (waiting.passed, waiting.metadata["waiting"].value) == (True, 1)
    configured.configure("housekeeping = { erase_days = 0.000001 }")
    over = verdicts(job(instance, "verify"))["clicks"]["erasures"]
    assert (over.passed, over.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "zelda" not in str(over)
    finish_erasures(table, older_than=timedelta(), dry_run=False)
    assert verdicts(job(instance, "verify"))["clicks"]["erasures"].passed


def test_a_change_of_columns_is_a_warning_that_names_them() -> None:
    def schema(**types: str) -> dg.TableSchema:
        return dg.TableSchema(columns=[dg.TableColumn(name, type_) for name, type_ in types.items()])

    old, new = schema(a="long", b="long", c="long"), schema(a="long", b="double", d="string")
    assert judge_schemas(old, old).violation is None
    assert judge_schemas(old, None).violation is None
    assert judge_schemas(new, old).violation == (
        dg.AssetCheckSeverity.WARN,
        "new column d (string); column c is gone; column b is double instead of long",
    )
