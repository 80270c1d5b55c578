"""A partition that a stream owns: how far it was fetched, how far it was handed out, and what may be committed."""

import threading
import time

from kafka_io.model import BrokerPartition
from kafka_io.registry.membership import Place


class Claim:
    """A place that is owned in one session of ZooKeeper, until it is revoked. Any thread may ask.

    Two offsets go on with the messages: `handed`, behind the last one that the stream gave out, and `done`, behind the
    last one after which it was asked for another. Only the latter is sure to be worked on: it is what is committed
    unless the user says that all is done. After a message inside a compressed one of 0.7 both are its start (facts, 5).
    """

    def __init__(self, place: Place, session_id: int | None, offset: int | None, *, fetch_bytes: int) -> None:
        self.place = place
        self.session_id = session_id
        self.committed = offset
        self.fetch_bytes = fetch_bytes
        self.trouble: str | None = None
        self._lock = threading.Lock()
        self._revoked = False
        self._fetched = self._handed = self._done = offset
        self._life = 0
        self._resting_until = 0.0

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.place[0]

    @property
    def partition(self) -> BrokerPartition:
        """Which of the topic's."""
        return self.place[1]

    def rest(self, seconds: float) -> None:
        """Nothing is fetched for so long."""
        self._resting_until = time.monotonic() + seconds

    @property
    def is_due(self) -> bool:
        """Whether it is not resting."""
        return time.monotonic() >= self._resting_until

    def standing(self) -> tuple[int, int | None]:
        """Which life of the claim this is, and from where to fetch; None before it is known where to begin."""
        with self._lock:
            return self._life, self._fetched

    def begin(self, offset: int) -> None:
        """Go on at `offset`; what was fetched before counts no more."""
        with self._lock:
            self._life += 1
            self._fetched = self._handed = self._done = offset

    def fetch_again(self) -> None:
        """Go on behind what was handed out; what was fetched before counts no more."""
        with self._lock:
            self._life += 1
            self._fetched = self._handed

    def fetched(self, life: int, offset: int) -> bool:
        """All before `offset` is fetched; False where that counts no more."""
        with self._lock:
            if self._revoked or life != self._life:
                return False
            self._fetched = offset
            return True

    def hand_out(self, life: int, offset: int) -> bool:
        """All before `offset` is given to the user; False where that must not be done any more."""
        with self._lock:
            if self._revoked or life != self._life:
                return False
            self._handed = offset
            return True

    def settle(self) -> None:
        """All that was handed out is worked on."""
        with self._lock:
            self._done = self._handed

    def revoke(self) -> None:
        """Nothing is handed out from here on."""
        with self._lock:
            self._revoked = True

    @property
    def revoked(self) -> bool:
        """Whether it is another's now."""
        return self._revoked

    @property
    def handed(self) -> int | None:
        """Where to go on if all that was handed out is done."""
        return self._handed

    @property
    def done(self) -> int | None:
        """Where to go on if the last message that was handed out is not done."""
        return self._done
