"""Plan, purely: cursor and bounds in, frozen slices out. What cannot be right stops here, with the exact range."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka_io.errors import Where
from kafka_io.model import Bounds, BrokerPartition
from pipelines.loading.ledger import Covered
from pipelines.loading.slices import Sizes, Slice, cut
from resources.errors import CursorAheadOfLog, CursorExpired, LoadError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`slices` to fetch, in order of partition and offset, and ranges that expired and are `skipped` by choice."""

    slices: tuple[Slice, ...]
    skipped: tuple[Slice, ...] = ()

    @property
    def size(self) -> int:
        """How many offsets are to be fetched."""
        return sum(one.size for one in self.slices)


def plan(
    covered: Covered,
    bounds: Mapping[BrokerPartition, Bounds],
    *,
    starts: Mapping[BrokerPartition, int],
    ends: Mapping[BrokerPartition, int],
    sizes: Sizes,
    skip_expired: bool = False,
    where: Where,
) -> Plan:
    """What is new below `ends`, cut into slices; of partitions that have no end there, nothing.

    A partition without a cursor starts at its earliest offset. Only a new table may begin later, at `starts`: an empty
    slice records that where nothing is there to load yet, so that the next run goes on from there. A partition that
    appears later is new data as a whole (B10).

    Raises:
        CursorExpired: the log begins after the cursor (B07), and `skip_expired` is not set.
        CursorAheadOfLog: the log ends before the cursor (B05, B14).
    """
    at: dict[BrokerPartition, int] = {}
    skipped: list[Slice] = []
    for id_, bound in bounds.items():
        first = bound.earliest if covered else max(bound.earliest, starts.get(id_, bound.earliest))
        at[id_] = covered[id_][1] if id_ in covered else first
        if skip_expired and at[id_] < bound.earliest:
            skipped.append(Slice(id=id_, start=at[id_], stop=bound.earliest))
            at[id_] = bound.earliest
        if not bound.earliest <= at[id_] <= bound.latest:
            raise _refused(at[id_], bound, where.within(Where(partition=str(id_))))
    new = {id_: (at[id_], min(ends[id_], bound.latest)) for id_, bound in bounds.items() if id_ in ends}
    slices = list(cut(new, bounds, sizes))
    if not covered and starts:
        slices += _begun(new, bounds)
    return Plan(slices=_in_order(slices), skipped=_in_order(skipped))


def plan_backfill(
    covered: Covered,
    bounds: Mapping[BrokerPartition, Bounds],
    *,
    starts: Mapping[BrokerPartition, int],
    sizes: Sizes,
) -> list[Slice]:
    """What the brokers hold from before the table's first offsets, down to `starts`, cut into slices.

    A capped run takes the newest of it, so that what is covered stays without a hole and the next run goes on below.
    """
    older = {
        id_: (max(start, bounds[id_].earliest), covered[id_][0])
        for id_, start in starts.items()
        if id_ in bounds and id_ in covered
    }
    return list(_in_order(cut(older, bounds, sizes, order=reversed)))


def _begun(new: Mapping[BrokerPartition, tuple[int, int]], bounds: Mapping[BrokerPartition, Bounds]) -> Iterator[Slice]:
    """Empty slices that say where a new table begins: of partitions of which it leaves something out.

    What has nothing at all needs none, but where all is so one says that the table is begun.
    """
    idle = {id_: at for id_, (at, end) in new.items() if end <= at}
    late = {id_: at for id_, at in idle.items() if bounds[id_].earliest < at}
    if not late and len(idle) == len(new):
        late = dict(sorted(idle.items())[:1])
    for id_, at in late.items():
        yield Slice(id=id_, start=at, stop=at)


def _in_order(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    return tuple(sorted(slices, key=lambda one: one.place))


def _refused(at: int, bound: Bounds, where: Where) -> LoadError:
    """Why a log is not to be read at an offset outside of it."""
    if bound.latest < bound.earliest:
        return CursorAheadOfLog(f"the broker says the log is [{bound.earliest}, {bound.latest})", where)
    if at < bound.earliest:
        return CursorExpired(
            f"offsets [{at}, {bound.earliest}) expired before they were loaded; the log begins at {bound.earliest}; "
            'on_expired = "skip" counts them as a gap and goes on there',
            where.at(at),
        )
    return CursorAheadOfLog(
        f"the log ends at {bound.latest}, before the committed offset {at}: it was truncated or made anew; "
        'on_truncated = "rewind" takes back what it lost',
        where.at(at),
    )
