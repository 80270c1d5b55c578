"""What a broker registers: ephemeral nodes that live as long as its session, and are made again in a new one."""

import logging
import threading
import time
from collections.abc import Callable

from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.registry.session import ZooKeeperQueries, ZooKeeperSession

_LOG = logging.getLogger(__name__)
_POLL_S = 0.2
# A server looks for dead sessions once a tick; 2 s is the tick that ZooKeeper is shipped with.
_TICK_S = 2.0


class EphemeralNodes:
    """The ephemeral nodes of one session."""

    def __init__(
        self, session: ZooKeeperSession, *, session_timeout_s: float, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._session = session
        self._patience_s = session_timeout_s + _TICK_S
        self._sleep = sleep
        self._values: dict[str, bytes] = {}
        self._changing = threading.Lock()
        session.on_connected(self._restore)

    def claim(self, path: str, value: bytes) -> None:
        """Register `value` at `path`, and again whenever the session is a new one.

        A broker that was killed is registered until its session has timed out [kafka-0.7: Broker registry]: that is
        waited for.

        Raises:
            RegistryError: the path stays registered by another session, or its chroot does not exist.
        """
        # Noted first: if the session ends between here and the return, the node is made again like all others.
        with self._changing:
            known = path in self._values
            self._values[path] = value
        try:
            self._make(path, value)
        except BaseException:
            if not known:
                with self._changing:
                    self._values.pop(path, None)
            raise

    def _make(self, path: str, value: bytes) -> None:
        deadline = time.monotonic() + self._patience_s
        while not self._made(path, value):
            if time.monotonic() >= deadline:
                raise RegistryError(f"{path!r} is already registered in ZooKeeper by another session")
            self._sleep(_POLL_S)

    def _made(self, path: str, value: bytes) -> bool:
        return self._session.in_one_session(lambda queries: hold(queries, path, value, self._session))

    def _restore(self) -> None:
        with self._changing:
            values = dict(self._values)
        for path, value in values.items():
            try:
                if not self._made(path, value):
                    _LOG.error("%r was lost with its session, and another session has registered it since", path)
            except RegistryUnavailable:
                return  # the next connection restores all of it
            except RegistryError as error:
                _LOG.error("%r was lost with its session and cannot be registered again: %s", path, error)


def hold(queries: ZooKeeperQueries, path: str, value: bytes, session: ZooKeeperSession) -> bool:
    """Make the ephemeral node `path`, and what is above it; False while another session has it."""
    made = queries.create(path, value, ephemeral=True)
    if made is None:
        make_parents(queries, path)
        made = queries.create(path, value, ephemeral=True)
    if made:
        return True
    # There, and perhaps ours: from before, or from a create whose answer was lost.
    owner = queries.owner(path)
    if owner is None or owner != session.id:
        return False
    [(_, content)] = queries.contents([path])
    return content is not None and (content.value == value or queries.change(path, value))


def make_parents(queries: ZooKeeperQueries, path: str) -> None:
    """Make the persistent nodes above `path`. The chroot is not ours to make; a genuine broker dies without it too."""
    names = path.split("/")[1:-1]
    for depth in range(1, len(names) + 1):
        if queries.create("/" + "/".join(names[:depth])) is None:
            raise RegistryError("the chroot of the ZooKeeper connect string does not exist")
