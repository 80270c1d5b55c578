"""Evaluates checks of tables: for checks that a user executes, for loads, and for the schedules that watch topics."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple, Self

import dagster as dg

# Dagster's page shows a result only if it is about the newest materialization, which this names. No public class does.
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as JudgedTable,
)

from kafka_io.errors import LocatedError
from pipelines.defs.catalog.catalog import TopicSchedule
from pipelines.defs.catalog.checks import (
    ERASURES,
    PROOF_CHECKS,
    SCHEMA_CHANGES,
    STATUS_CHECKS,
    VERIFY_CHECKS,
    Verdict,
    judge_erasures,
    judge_proof,
    judge_schemas,
    judge_status,
)
from pipelines.defs.catalog.metadata import status_metadata
from pipelines.defs.runs.schedule_status import ask_schedule_status
from pipelines.formats.tables import lake_table
from pipelines.maintenance.erased_files import waiting_erasures
from pipelines.status.status import TopicStatus, now_ms
from pipelines.verify.last_proof import LastProofs
from pipelines.verify.topic_tables import verify_topic
from pipelines.verify.verify import Proof
from resources.penstock import PenstockResource
from resources.table_names import route_of

REPEAT_AFTER_S = 24 * 3600.0
"""A result that does not change is reported again after this time: each event costs Dagster time and space."""
_OBSERVE_AFTER_S = 55 * 60.0  # a little less than an hour, because a tick is a little late
_COLUMNS = "dagster/column_schema"
PROOF_NAMES = frozenset(PROOF_CHECKS)
_OF_VERIFY = frozenset(VERIFY_CHECKS)
Results = Mapping[tuple[str, str], Verdict]
"""Verdicts by table and name of the check."""


@dataclass(frozen=True, kw_only=True)
class CheckRun:
    """Evaluates checks of the tables of one schedule.

    Args:
        instance: has the columns of earlier loads, and earlier results.
        penstock: opens the cluster and the lake.
        schedule: the schedule.
        known: the status of tables, if it is known already; None to ask the brokers.
    """

    instance: dg.DagsterInstance
    penstock: PenstockResource
    schedule: TopicSchedule
    known: Mapping[str, TopicStatus] | None = None

    @classmethod
    def of(cls, instance: dg.DagsterInstance, schedule: TopicSchedule) -> Self:
        """The checks of a schedule, with the settings as they are now."""
        return cls(instance=instance, penstock=schedule.catalog.source.fresh(), schedule=schedule)

    @cached_property
    def statuses(self) -> Mapping[str, TopicStatus]:
        """The status of each table of the schedule. The brokers are asked once."""
        if self.known is not None:
            return self.known
        asked = ask_schedule_status(self.penstock, self.schedule, self.schedule.specs)
        return {status.topic: status for status in asked}

    def observations(self) -> Iterator[dg.AssetObservation]:
        """The status of each topic that has records without a row, as an event about the topic in Kafka.

        Once an hour is enough to plot it, and keeps runs of `watch` few (fault F17).
        """
        now = now_ms()
        for topic, status in self.statuses.items():
            if route_of(topic):
                continue
            key = self.schedule.props(topic).source_key
            if status.lag != 0 and self._last_observed_s(key) < now / 1000 - _OBSERVE_AFTER_S:
                yield dg.AssetObservation(asset_key=key, metadata=status_metadata(status, now))

    def _last_observed_s(self, key: dg.AssetKey) -> float:
        records = self.instance.fetch_observations(key, limit=1).records
        return records[0].timestamp if records else 0.0

    def news(self) -> list[dg.AssetObservation | dg.AssetCheckEvaluation]:
        """The events that Dagster does not have yet: the lag of each topic, and results of checks that have changed.

        Raises:
            LocatedError: the cluster or the lake does not answer.
        """
        wanted = {topic: set(self.schedule.checks(topic)) - _OF_VERIFY for topic in self.schedule.specs}
        evaluations = self.evaluations(self.changed(self.results(wanted)))
        return [*self.observations(), *evaluations]

    def results(self, wanted: Mapping[str, Collection[str]]) -> dict[tuple[str, str], Verdict]:
        """The verdicts of the wanted checks, by table. The brokers are asked only if a check needs them."""
        needs_brokers = any(name in STATUS_CHECKS for names in wanted.values() for name in names)
        statuses = self.statuses if needs_brokers else {}
        now, limits = now_ms(), self.penstock.settings().timing_of(self.schedule.name).limits
        proofs = self._proofs([topic for topic, names in wanted.items() if not PROOF_NAMES.isdisjoint(names)])
        verdicts: dict[tuple[str, str], Verdict] = {}
        for topic, names in wanted.items():
            for name in STATUS_CHECKS:
                if name in names and topic in statuses:
                    verdicts[topic, name] = judge_status(name, statuses[topic], limits, now)
            if topic in proofs:
                verdicts |= {(topic, name): judge_proof(name, proofs[topic]) for name in PROOF_CHECKS if name in names}
            if ERASURES in names:
                verdicts[topic, ERASURES] = self._erasures(topic)
            if SCHEMA_CHANGES in names:
                verdicts[topic, SCHEMA_CHANGES] = judge_schemas(*self._columns(topic))
        return verdicts

    def _proofs(self, topics: Sequence[str]) -> dict[str, Proof]:
        """The proofs of those tables that exist, or existed. Several tables are read at a time."""
        if not topics:
            return {}
        lake, cluster = self.penstock.lake(), self.schedule.cluster
        tables = {
            topic: lake_table(lake, cluster, topic)
            for topic in topics
            if lake.has_table(cluster, topic) or self._was_loaded(topic)
        }
        proofs = LastProofs(lake, cluster).prove_all(list(tables.values()), verify_topic)
        # The warnings are about the copies in the lake; the proofs themselves are in Dagster.
        return {topic: proof for topic, (proof, _) in zip(tables, proofs, strict=True)}

    def _erasures(self, topic: str) -> Verdict:
        """The verdict about erasures of a table whose files still exist."""
        lake, cluster = self.penstock.lake(), self.schedule.cluster
        has_table = lake.has_table(cluster, topic)
        try:
            committed = waiting_erasures(lake_table(lake, cluster, topic)) if has_table else ()
        except LocatedError as error:  # other tables are still judged (fault U03)
            sentence = f"the erasures of the table are not known: {error}"
            return Verdict(violation=(dg.AssetCheckSeverity.ERROR, sentence), passed="")
        return judge_erasures(committed, self.penstock.settings().housekeeping.erase_days, datetime.now(UTC))

    def _was_loaded(self, topic: str) -> bool:
        """Whether Dagster knows a load of the table. Then a table that is not there is lost (fault E07)."""
        return bool(self.instance.fetch_materializations(self.schedule.key(topic), limit=1).records)

    def _columns(self, topic: str) -> tuple[dg.TableSchema | None, dg.TableSchema | None]:
        """The columns of the two newest materializations."""
        records = self.instance.fetch_materializations(self.schedule.key(topic), limit=2).records
        values = [
            record.asset_materialization.metadata.get(_COLUMNS) for record in records if record.asset_materialization
        ]
        schemas = [value.schema if isinstance(value, dg.TableSchemaMetadataValue) else None for value in values]
        newest, before, *_ = [*schemas, None, None]
        return newest, before

    def evaluations(self, verdicts: Results) -> Iterator[dg.AssetCheckEvaluation]:
        """The verdicts as events about the newest materialization of each table."""
        tables = self._newest_tables({topic for topic, _ in verdicts})
        for (topic, name), verdict in verdicts.items():
            yield dg.AssetCheckEvaluation(
                asset_key=self.schedule.key(topic),
                check_name=name,
                target_materialization_data=tables.get(topic),
                **verdict.fields(),
            )

    def changed(self, verdicts: Results) -> dict[tuple[str, str], Verdict]:
        """The verdicts that Dagster does not show yet, or whose newest result is old.

        After a load, Dagster's page shows no older result. What does not pass is reported again then (fault E17).
        """
        keys = {dg.AssetCheckKey(self.schedule.key(topic), name): (topic, name) for topic, name in verdicts}
        newest = newest_results(self.instance, list(keys))
        tables = self._newest_tables({topic for (topic, _), verdict in verdicts.items() if verdict.violation})
        oldest = time.time() - REPEAT_AFTER_S
        return {
            pair: verdicts[pair]
            for key, pair in keys.items()
            if key not in newest
            or newest[key].state != verdicts[pair].state
            or newest[key].time_s < oldest
            or (verdicts[pair].violation and newest[key].table != tables.get(pair[0]))
        }

    def _newest_tables(self, topics: Collection[str]) -> dict[str, JudgedTable]:
        """The newest materialization of each table that has one."""
        by_key = {self.schedule.key(topic): topic for topic in topics}
        tables = {}
        for record in self.instance.get_asset_records(list(by_key)) if by_key else ():
            newest = record.asset_entry.last_materialization_record
            if newest is not None:
                tables[by_key[record.asset_entry.asset_key]] = JudgedTable(
                    storage_id=newest.storage_id, run_id=newest.run_id, timestamp=newest.timestamp
                )
        return tables


class StoredResult(NamedTuple):
    """The newest result of a check: its state, its time, and the materialization that it is about."""

    state: str
    time_s: float
    table: JudgedTable | None


def newest_results(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]
) -> dict[dg.AssetCheckKey, StoredResult]:
    """The newest result of each check that has one."""
    results = {}
    for key, record in instance.event_log_storage.get_latest_asset_check_execution_by_key(keys).items():
        evaluation = record.evaluation
        if isinstance(evaluation, dg.AssetCheckEvaluation):
            state = "PASSED" if evaluation.passed else evaluation.severity.value
            results[key] = StoredResult(state, record.create_timestamp, evaluation.target_materialization_data)
    return results
