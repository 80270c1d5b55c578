"""What a member owns: taken and given up as the group changes, and its offsets committed.

Everything here is asked of ZooKeeper under one lock, so that an offset is never committed behind the back of a
rebalance. What stays with a stream in a rebalance is read on without a break: a genuine consumer lets go of all it has
and takes it again, but only what changes hands needs to be free for others.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafka_io.client.connector.claim import Claim
from kafka_io.client.connector.fetcher import Fetcher
from kafka_io.client.connector.options import Options
from kafka_io.errors import KafkaIOError, RegistryUnavailable
from kafka_io.registry.dialect import Dialect
from kafka_io.registry.listing import Vanished
from kafka_io.registry.members import Subscription, thread_id
from kafka_io.registry.membership import Membership, Picture, Place
from kafka_io.registry.rebalance import assign

_LOG = logging.getLogger(__name__)

EVERY_TOPIC = ""
"""In the place of a topic's name, for streams of all topics that a filter allows."""


@dataclass(frozen=True, slots=True)
class _Owned:
    claim: Claim
    fetcher: Fetcher

    def stays(self, fetcher: Fetcher | None) -> bool:
        """Whether the share has it with this fetcher still; what could not be released in time is taken anew."""
        return fetcher is self.fetcher and not self.claim.revoked


class Ownership:
    """The claims of one member. Any thread may ask.

    Args:
        streams: the fetchers of the streams in order, by topic or for EVERY_TOPIC.
        on_change: called on another thread when the group, its topics or the brokers may have changed.
    """

    def __init__(
        self,
        membership: Membership,
        *,
        subscription: Subscription,
        dialect: Dialect,
        streams: Mapping[str, Sequence[Fetcher]],
        options: Options,
        on_change: Callable[[], None],
    ) -> None:
        self._membership = membership
        self._subscription = subscription
        self._value = subscription.value(dialect, timestamp_ms=time.time_ns() // 1_000_000)
        self._streams = streams
        self._fetchers = [fetcher for fetchers in streams.values() for fetcher in fetchers]
        self._options = options
        self._on_change = on_change
        self._changing = threading.RLock()
        self._session_id: int | None = None
        self._claims: dict[Place, _Owned] = {}

    def rebalance(self) -> bool:
        """Take this member's share of what the group consumes; False while others still own some of it.

        Raises:
            RegistryError: ZooKeeper gives no answer, or one that makes no sense. What is owned is read on.
        """
        with self._changing:
            session_id = self._membership.session_id
            if not self._membership.join(self._value):
                _LOG.warning("another consumer %r is in the group", self._membership.member)
                return False
            picture = self._membership.picture(self._subscription, _skip)
            if self._membership.watch(picture.partitions, self._on_change):  # it may have changed before
                picture = self._membership.picture(self._subscription, _skip)
            if self._session_id not in {None, session_id}:
                _LOG.warning("the session with ZooKeeper is another one: the group is joined anew")
            self._session_id = session_id
            share = self._share(picture)
            self._give_up([place for place, owned in self._claims.items() if not owned.stays(share.get(place))])
            complete = self._take(share)
            for fetcher in self._fetchers:
                fetcher.assign(owned.claim for owned in self._claims.values() if owned.fetcher is fetcher)
            return complete

    def commit(self, offset_of: Callable[[Claim], int | None]) -> None:
        """Keep the offsets of all claims in ZooKeeper, where they are others than there.

        Raises:
            RegistryUnavailable: no answer, or what was owned is lost with its session.
        """
        with self._changing:
            self._commit([owned.claim for owned in self._claims.values()], offset_of)

    def keep(self, claim: Claim) -> None:
        """Keep the offset of one claim in ZooKeeper, if it is owned still.

        Raises:
            RegistryUnavailable: as `commit`.
        """
        with self._changing:
            if not claim.revoked:
                self._commit([claim], lambda claim: claim.done)

    def revoke_all(self) -> None:
        """Hand nothing out any more."""
        with self._changing:
            for owned in self._claims.values():
                owned.claim.revoke()

    def _share(self, picture: Picture) -> dict[Place, Fetcher]:
        """The places that are this member's, each with the fetcher of the stream that consumes it."""
        share = {}
        for topic, partitions in picture.partitions.items():
            assigned = assign(partitions, picture.threads[topic])
            for stream, fetcher in enumerate(self._streams.get(topic) or self._streams[EVERY_TOPIC]):
                for partition in assigned.get(thread_id(self._membership.member, stream), ()):
                    share[topic, partition] = fetcher
        return share

    def _give_up(self, places: Sequence[Place]) -> None:
        """Let go, offsets first: the next owner begins where they say. What is lost already is just dropped."""
        claims = [self._claims[place].claim for place in places]
        for claim in claims:
            claim.revoke()
        kept = [claim for claim in claims if claim.session_id == self._session_id]
        self._commit(kept, lambda claim: claim.done)
        self._membership.release([claim.place for claim in kept], self._session_id)
        for place in places:
            del self._claims[place]

    def _take(self, share: Mapping[Place, Fetcher]) -> bool:
        """Own what is not owned in this session yet; what others own still is revoked, if it was lost to them."""
        missing = {
            place: thread_id(self._membership.member, self._number_of(fetcher))
            for place, fetcher in share.items()
            if place not in self._claims or self._claims[place].claim.session_id != self._session_id
        }
        taken = self._membership.take(missing, self._session_id)
        offsets = self._membership.offsets({topic for topic, _ in taken})
        for place in missing:
            lost = self._claims.pop(place, None)
            offset = offsets.get(place)
            if lost and place in taken and lost.claim.committed == offset:
                lost.claim.session_id = self._session_id  # nobody had it meanwhile: it is read on without a break
                self._claims[place] = lost
                continue
            if lost:
                lost.claim.revoke()
            if place in taken:
                claim = Claim(place, self._session_id, offset, fetch_bytes=self._options.fetch_bytes)
                self._claims[place] = _Owned(claim, share[place])
        left = missing.keys() - taken
        if left:
            _LOG.info("%d partitions are others' still, as %s of topic %r", len(left), *reversed(min(left)))
        return not left

    def _number_of(self, fetcher: Fetcher) -> int:
        return next(each.index(fetcher) for each in self._streams.values() if fetcher in each)

    def _commit(self, claims: Sequence[Claim], offset_of: Callable[[Claim], int | None]) -> None:
        moved = [(claim, at) for claim in claims if (at := offset_of(claim)) is not None and at != claim.committed]
        lost = any(claim.session_id != self._session_id for claim, _ in moved)
        if lost or not self._membership.commit({claim.place: at for claim, at in moved}, self._session_id):
            raise RegistryUnavailable("what was owned is lost with its session in ZooKeeper: no offset is committed")
        for claim, at in moved:
            claim.committed = at


def _skip(path: str, error: KafkaIOError) -> None:
    if not isinstance(error, Vanished):
        _LOG.warning("a topic of the group's is passed over, see %r: %s", path, error)
