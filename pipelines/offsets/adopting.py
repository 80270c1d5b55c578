"""A table that begins where another loader ended.

Its first commit holds an empty range of each partition, at the next offset that the other loader would have read; every
load goes on from there, as from any cursor. Nothing is guessed: what the source does not tell, and offsets that the
brokers do not hold, need a choice.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from kafka_io.client.reading import Span
from kafka_io.errors import WireError
from kafka_io.model import Bounds, BrokerPartition, TopicEntry
from pipelines.loading.commit import Loading, commit
from pipelines.loading.ledger import Choice, Standing
from pipelines.loading.load import EXPIRED, Loader
from pipelines.loading.table import LakeTable
from pipelines.loading.table_log import Snapshot
from pipelines.loading.work import Facts
from pipelines.offsets.handed import Handed
from resources.errors import CommitRefused, ImportRefused, TopicUnknown

Missing = Literal["fail", "earliest"]
"""What becomes of partitions that hold something, and of which the source has no offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Where the table begins in one partition, beside what the broker holds of it.

    `adopted` is the source's offset; None where it has none, and the partition is loaded as a whole.
    """

    broker: int | None
    partition: int
    adopted: int | None
    start: int
    earliest: int
    latest: int

    @property
    def id(self) -> BrokerPartition:
        """The broker-partition."""
        return BrokerPartition(self.broker, self.partition)

    @property
    def left(self) -> int:
        """How many offsets the first load finds; bytes of the log in 0.7."""
        return self.latest - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopting(Loading):
    """The first commit of a table, or none: where another run was first it is not built anew on top."""

    def onto(self, now: Snapshot) -> Self | None:
        """See Change."""
        if now.entry is None:
            return self
        raise CommitRefused(f"run {now.entry.run} was first: the table is loaded", self.standing.topic.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What adopting a topic's offsets would do: nothing has changed yet."""

    topic: str
    source: str
    partitions: tuple[Begun, ...]
    change: Adopting

    def as_dict(self) -> dict[str, Any]:
        """As `penstock offsets import --json` prints it."""
        return {
            "topic": self.topic,
            "source": self.source,
            "partitions": [{**asdict(one), "left": one.left} for one in self.partitions],
        }


def plan_adoption(
    loader: Loader, table: LakeTable, topic: str, handed: Handed, *, source: str, missing: Missing = "fail"
) -> Adoption:
    """Where the table of `topic` would begin with what `source` handed over. Nothing is written.

    Raises:
        TopicUnknown: the cluster has no such topic.
        ImportRefused: the table is loaded; or what was handed over does not fit the logs.
        KafkaIOError: a broker cannot tell what it holds.
    """
    found = loader.cluster.topic(topic)
    if found is None:
        raise TopicUnknown("the registry has no such topic", table.where)
    _check_new(table, table.existing())
    bounds, errors = loader.bounds(found)
    if errors:
        raise errors[0]
    skip = loader.choices.on_expired == "skip"
    wrong = [
        *_unfit(handed, bounds, source=source, missing=missing),
        *(told for id_, at, bound in _named(handed, bounds) if (told := _outside(id_, at, bound, skip=skip))),
        *_torn(loader, found, handed, bounds),
    ]
    if wrong:
        others = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
        raise ImportRefused(f"{wrong[0]}{others}", table.where)
    begun = tuple(_begun(id_, handed.get(id_), bound) for id_, bound in sorted(bounds.items()))
    return Adoption(topic=topic, source=source, partitions=begun, change=_change(loader, found, begun, bounds, source))


def adopt(table: LakeTable, planned: Adoption) -> int:
    """Write the first commit of the table; its version.

    Raises:
        ImportRefused: the table was loaded meanwhile.
        LoadError: see `commit`.
    """
    at = table.snapshot()
    _check_new(table, at)
    return commit(table, at, planned.change).version


def _check_new(table: LakeTable, at: Snapshot | None) -> None:
    if at is not None and at.entry is not None:
        raise ImportRefused("the table is loaded: only a new one can begin where another loader ended", table.where)


def _named(handed: Handed, bounds: Mapping[BrokerPartition, Bounds]) -> Iterator[tuple[BrokerPartition, int, Bounds]]:
    """The partitions that the source has an offset of and the brokers hold."""
    for id_, bound in sorted(bounds.items()):
        at = handed.get(id_)
        if at is not None:
            yield id_, at, bound


def _unfit(handed: Handed, bounds: Mapping[BrokerPartition, Bounds], *, source: str, missing: Missing) -> Iterator[str]:
    """Why the source's partitions are not those of the topic."""
    told = {id_ for id_, at in handed.items() if at is not None}
    if not told:
        yield f"{source} has no offset of it"
    for id_ in sorted(told - bounds.keys()):
        yield f"{source} has an offset of partition {id_}, which the cluster does not have now"
    for id_ in sorted(bounds.keys() - told) if told and missing == "fail" else ():
        bound = bounds[id_]
        if bound.earliest < bound.latest:
            yield (
                f"{source} has no offset of partition {id_}, which holds [{bound.earliest}, {bound.latest}); "
                "with --missing earliest such partitions are loaded as a whole"
            )


def _outside(id_: BrokerPartition, at: int, bound: Bounds, *, skip: bool) -> str | None:
    """Why the log cannot be gone on with from there."""
    if at > bound.latest:
        return f"partition {id_}: the log is [{bound.earliest}, {bound.latest}), and the offset is {at}, beyond its end"
    if at < bound.earliest and not skip:
        return (
            f"partition {id_}: offsets [{at}, {bound.earliest}) expired since; "
            'on_expired = "skip" counts them as a gap and goes on where the log begins'
        )
    return None


def _torn(loader: Loader, found: TopicEntry, handed: Handed, bounds: Mapping[BrokerPartition, Bounds]) -> Iterator[str]:
    """Where a log of 0.7 has no message at the offset: any byte can be asked for, and only a message starts rows."""
    for id_, at, bound in _named(handed, bounds):
        if id_.broker is not None and bound.earliest < at < bound.latest:
            span = Span(topic=found.name, id=id_, start=at, stop=bound.latest, incarnation=found.incarnation)
            try:
                with closing(loader.cluster.source(id_).open()) as reader:
                    for batches in reader.read([span]):
                        next(batches, None)
            except WireError as error:
                yield f"partition {id_}: no message starts at {at} ({error.reason})"


def _begun(id_: BrokerPartition, adopted: int | None, bound: Bounds) -> Begun:
    return Begun(
        broker=id_.broker,
        partition=id_.partition,
        adopted=adopted,
        start=max(bound.earliest, adopted or 0),
        earliest=bound.earliest,
        latest=bound.latest,
    )


def _change(
    loader: Loader, found: TopicEntry, begun: tuple[Begun, ...], bounds: Mapping[BrokerPartition, Bounds], source: str
) -> Adopting:
    """Empty ranges, and before them what expired by choice. Partitions that are not adopted need no range."""
    now_us = int(loader.now().timestamp() * 1_000_000)
    named = [(one, one.adopted) for one in begun if one.adopted is not None]
    return Adopting(
        standing=Standing(topic=loader.identity(found)),
        facts=tuple(_facts(one, adopted, now_us) for one, adopted in named),
        epochs={one.id: bounds[one.id].epoch for one, _ in named if bounds[one.id].epoch >= 0},
        choices=tuple(choice for one, adopted in named for choice in _choices(one, adopted, source)),
        run=loader.run_id,
    )


def _facts(one: Begun, adopted: int, now_us: int) -> Facts:
    return Facts(
        broker=one.broker,
        partition=one.partition,
        start=adopted,
        stop=one.start,
        gaps={EXPIRED: one.start - adopted} if adopted < one.start else {},
        loaded_at_us=now_us,
    )


def _choices(one: Begun, adopted: int, source: str) -> Iterator[Choice]:
    partition = str(one.id)
    yield Choice(setting="adopted from", value=source, partition=partition, start=adopted, stop=adopted)
    if adopted < one.start:
        yield Choice(setting="on_expired", value="skip", partition=partition, start=adopted, stop=one.start)
