"""The fourth stage of a load: the slices of a step are files now, and their logs are still those of the table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka_io.errors import LeaderChanged
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.bad_records import check_records
from pipelines.fetch.decoding import Decoding
from pipelines.fetch.slice_fetcher import FetchOrder, RoutedTable, TopicRouting, loading_time, microseconds
from pipelines.fetch.unreadable import GAPS
from pipelines.identity.divergence import check_expired, check_same_logs
from pipelines.identity.holes import Refusal
from pipelines.identity.truncation import check_incarnation
from pipelines.ledger.committed_range import EXPIRED, CommittedRange
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import TableState
from pipelines.ledger.slice_facts import NOTHING_DECODED, DecodedCounts, SliceFacts
from pipelines.load.planned import Planned
from pipelines.load.run import Run
from pipelines.load.stage import Stage
from pipelines.routes.router import MAIN_ROUTE
from pipelines.routes.topic_router import TopicRouter
from resources.failpoints import failpoint
from resources.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(Stage):
    """The slices of a step after their fetch. A slice that failed has its failure among the facts.

    Args:
        planned: the third stage.
        facts: what was fetched, and what was skipped as expired, in order of partition and offset.
        decodings: for each route the plan by which the values were decoded.
    """

    planned: Planned
    facts: tuple[SliceFacts, ...]
    decodings: Mapping[str, Decoding]

    def facts_of(self, route: str) -> list[SliceFacts]:
        """The facts of the table of a route."""
        return [facts for facts in self.facts if facts.failure or facts.route == route]

    @property
    def failures(self) -> list[SliceFailure]:
        """Why slices were not fetched, and are not planned again."""
        again = self.led_by_others
        return [facts.failure for facts in self.facts if facts.failure and facts.partition not in again]

    @property
    def failed(self) -> set[BrokerPartition]:
        """The partitions of slices that were not fetched."""
        return {slice_facts.offsets.partition for slice_facts in self.facts if slice_facts.failure}

    @property
    def led_by_others(self) -> set[BrokerPartition]:
        """The partitions that have only failed because their leader changed after the plan (fault A03)."""
        failed = [facts for facts in self.facts if facts.failure]
        others = {facts.partition for facts in failed if facts.failure and facts.failure.kind != LeaderChanged.__name__}
        return self.failed - others if self.planned.target.follows_leaders else set()


def fetch(run: Run, planned: Planned, on_progress: Progress, earlier: Mapping[str, DecodedCounts]) -> Fetched:
    """Fetch the slices of a step, and begin the slices of the steps that probably come next.

    Args:
        run: the run.
        planned: the step.
        on_progress: is called with how much of the run is done, in offsets.
        earlier: how many records of the earlier steps decode, by route.

    Raises:
        BadRecords: more records do not decode than the settings allow.
        TooManySkipped: `skip` leaves out a larger share of the records than the settings allow.
        TopicRecreated: a log became another one while it was read.
        KafkaIOError: nobody can see whether the logs are still the same.
        SparkFailed: the slices were not fetched.
    """
    reconciled = planned.reconciled
    decodings = {
        table.route: Decoding(
            run.topics.format_of(table.state.topic.name),
            table.snapshot,
            run.topics.open_registry,
            adopts_schemas=run.choices.on_schema_changed == "adopt",
        )
        for table in reconciled.tables
    }
    fetched = [*_expired(run, planned), *_fetched(run, planned, decodings, on_progress)]
    facts = tuple(sorted(fetched, key=lambda slice_facts: slice_facts.offsets))
    _check_logs(run, planned, facts)
    failpoint("fetched")
    result = Fetched(
        planned=planned,
        facts=facts,
        decodings=decodings,
        warnings=tuple(sentence for decoding in decodings.values() for sentence in decoding.warnings),
    )
    for table in reconciled.tables:
        format_, counted = run.topics.format_of(table.state.topic.name), earlier.get(table.route, NOTHING_DECODED)
        check_records(format_, result.facts_of(table.route), table.state.topic.where, earlier=counted)
    return result


def _fetched(run: Run, planned: Planned, decodings: Mapping[str, Decoding], on_progress: Progress) -> list[SliceFacts]:
    """The facts of the slices. Without the choice to skip missing offsets, slices that lack some are left out."""
    reconciled, (step, *ahead) = planned.reconciled, planned.target.ahead
    began = reconciled.discovered.began
    order = FetchOrder(
        topic=reconciled.topic,
        table_uri=reconciled.tables[-1].table.uri,
        slices=step.plan.slices,
        began=max(loading_time(began, table.snapshot.entry) for table in reconciled.tables),
        epochs=step.epochs,
        sizes=step.sizes,
        skip=tuple(name for name in GAPS if getattr(run.choices, name) == "skip"),
        to_message=step.plan.to_message,
        on_progress=planned.target.progress(step.plan, on_progress),
        ahead=ahead,
        routing=_routing(run, planned, decodings),
    )
    decoding = decodings[MAIN_ROUTE]
    facts = run.fetcher.fetch_decoded(order, decoding)
    if run.choices.on_missing == "skip":
        return facts
    return _without_missing(
        facts, reconciled.state, lambda slices: run.fetcher.fetch_decoded(order.again(slices), decoding)
    )


def _routing(run: Run, planned: Planned, decodings: Mapping[str, Decoding]) -> TopicRouting | None:
    """The tables of the topic that get rows; None if it has only one."""
    reconciled = planned.reconciled
    *others, own = reconciled.tables
    tables = run.topics.tables_of(reconciled.topic.name)
    if tables is None:
        return None
    routed = (
        RoutedTable(
            route=table.route, uri=table.table.uri, decoding=decodings[table.route], covered=table.state.covered
        )
        for table in others
    )
    router = TopicRouter(
        tables,
        reconciled.topic.name,
        run.topics.format_of,
        run.topics.open_registry,
        {table.route: table.snapshot.entry for table in reconciled.tables},
        adopts_schemas=run.choices.on_schema_changed == "adopt",
    )
    return TopicRouting(router=router, covered=own.state.covered, others=tuple(routed))


def _without_missing(
    facts: list[SliceFacts], state: TableState, fetch_again: Callable[[Sequence[OffsetRange]], list[SliceFacts]]
) -> list[SliceFacts]:
    """The facts without slices whose offsets are missing from the log.

    What lies between the missing offsets and the table is fetched again, as slices of its own, so that it can be
    committed.
    """
    refusal = Refusal.of(facts, state.covered, state.topic.where)
    again = Refusal.of(fetch_again(refusal.intact), state.covered, state.topic.where)
    facts = [*refusal.facts, *again.facts]
    failed = {part.offsets: part for part in facts if part.failure}  # the tables of a topic lack the same offsets
    return [*(part for part in facts if not part.failure), *failed.values()]


def _expired(run: Run, planned: Planned) -> Iterator[SliceFacts]:
    """The facts of offsets that expired before they were loaded, and are skipped by choice."""
    skipped = planned.step.skipped
    if skipped:  # the bounds of another incarnation are no reason for a gap
        check_incarnation(run.cluster, planned.reconciled.topic, [offsets.partition for offsets in skipped])
    loaded_at_us = microseconds(planned.reconciled.discovered.began)
    for table in planned.reconciled.tables if skipped else ():
        for whole in skipped:
            _, cursor = table.state.covered.get(whole.partition, (0, whole.start))
            offsets = replace(whole, start=max(whole.start, cursor))
            if offsets.size > 0:
                gap = CommittedRange(offsets=offsets, loaded_at_us=loaded_at_us, gaps={EXPIRED: offsets.size})
                yield SliceFacts(range=gap, route=table.route)


def _check_logs(run: Run, planned: Planned, facts: Sequence[SliceFacts]) -> None:
    """Check that the logs are still those of the table; see the functions that this one calls.

    The logs were compared before the fetch. A topic without an id that was created again between both would give rows
    of another topic (faults B05, P11), so the last messages are compared once more after it. With an id, the check of
    the incarnation after the fetch has shown that it is the same topic.
    """
    state, bounds = planned.reconciled.state, planned.reconciled.bounds
    if not state.findings.same_topic_id and any(slice_facts.offsets.size for slice_facts in facts):
        without = planned.step.errors
        loaded = {id_: bound for id_, bound in bounds.items() if id_ not in without}
        for table in planned.reconciled.tables:
            check_same_logs(run.cluster, table.state, loaded)
    check_expired(run.cluster, state, planned.step.skipped)
