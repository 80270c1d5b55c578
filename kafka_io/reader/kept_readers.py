"""Readers that stay open between fetches, so that not each small fetch has to connect and to log in.

A reader belongs to one thread at a time. It is lent again only if it was opened a short time ago. So changed
certificates and secrets are soon used, and no connection is so old that something between the broker and this process
has forgotten it.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf

from kafka_io.closing import Closing, closed_on_error
from kafka_io.reader.reader import PausableReader, Reader
from kafka_io.reader.source import Source

LENT_FOR_S = 60.0
"""A reader is not lent again later than this after it was opened."""


@dataclass(frozen=True, slots=True)
class _KeptReader:
    """An open reader that nobody uses, and the time until which it can be lent."""

    reader: PausableReader
    lent_until: float


class KeptReaders(Closing):
    """Lends readers, and keeps those that nobody uses, by their source. Several threads use it.

    Of each source there are at most as many readers as are lent at the same time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._unused: defaultdict[Source, list[_KeptReader]] = defaultdict(list)
        self._is_closed = False

    @contextmanager
    def lent(self, source: Source) -> Iterator[Reader]:
        """A reader of this source for the `with` block. An error in the block closes the reader."""
        kept = self._taken(source)
        with closed_on_error(kept.reader):
            yield kept.reader
            # The reader forgets its topics: until the next fetch a topic can be created again or get another leader
            # (faults B01, B06).
            kept.reader.pause()
        with self._lock:
            self._unused[_key(source)].append(kept)
        if self._is_closed:
            self.close()

    def _taken(self, source: Source) -> _KeptReader:
        """A reader that was kept and is not too old, else a new one."""
        now = self._clock()
        self._close_until(now)
        with self._lock:
            unused = self._unused[_key(source)]
            kept = unused.pop() if unused else None
        if kept is None:
            return _KeptReader(source.open(), now + LENT_FOR_S)
        with closed_on_error(kept.reader):
            kept.reader.resume()
        return kept

    def _close_until(self, time_s: float) -> None:
        """Close the readers that nobody uses and that are not lent again from this time on."""
        with self._lock:
            every = [(readers, kept) for readers in self._unused.values() for kept in readers]
            too_old = [(readers, kept) for readers, kept in every if kept.lent_until <= time_s]
            for readers, kept in too_old:
                readers.remove(kept)
        for _, kept in too_old:
            kept.reader.close()

    def close(self) -> None:
        """Close the readers that nobody uses. The others are closed when they come back."""
        self._is_closed = True
        self._close_until(inf)


def _key(source: Source) -> Source:
    """The same for sources that differ only in the order in which a broker listed the brokers."""
    return replace(source, brokers=tuple(sorted(source.brokers)))
