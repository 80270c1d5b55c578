"""Ephemeral nodes: they exist as long as their session, and are created again in a new session."""

import logging
import threading
import time
from collections.abc import Callable

from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.zookeeper.session import ZooKeeperQueries, ZooKeeperSession

_LOG = logging.getLogger(__name__)
_POLL_S = 0.2
# A server looks for expired sessions once per tick; ZooKeeper's default tick is 2 s.
_TICK_S = 2.0


class EphemeralNodes:
    """The ephemeral nodes of one session."""

    def __init__(
        self, session: ZooKeeperSession, *, session_timeout_s: float, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._session = session
        self._takeover_s = session_timeout_s + _TICK_S
        self._sleep = sleep
        self._values: dict[str, bytes] = {}
        self._lock = threading.Lock()
        session.on_connected(self._restore)

    def claim(self, path: str, value: bytes) -> None:
        """Register `value` at `path`, now and whenever a new session begins.

        A broker that was killed stays registered until its session times out [kafka-0.7: Broker registry]. This waits
        for it.

        Raises:
            RegistryError: another session still has the path after that time, or the chroot does not exist.
        """
        # Stored before the node is created: if the session ends in between, the new session creates this node, too.
        with self._lock:
            is_new = path not in self._values
            self._values[path] = value
        try:
            self._wait_until_held(path, value)
        except BaseException:
            if is_new:
                with self._lock:
                    self._values.pop(path, None)
            raise

    def _wait_until_held(self, path: str, value: bytes) -> None:
        deadline = time.monotonic() + self._takeover_s
        while not self._hold(path, value):
            if time.monotonic() >= deadline:
                raise RegistryError(f"{path!r} is already registered in ZooKeeper by another session")
            self._sleep(_POLL_S)

    def _hold(self, path: str, value: bytes) -> bool:
        return self._session.in_one_session(lambda queries: hold(queries, path, value, self._session))

    def _restore(self) -> None:
        with self._lock:
            values = dict(self._values)
        for path, value in values.items():
            try:
                if not self._hold(path, value):
                    _LOG.error("the session of %r is lost, and another session has registered it in the meantime", path)
            except RegistryUnavailable:
                return  # the next connection restores all nodes
            except RegistryError as error:
                _LOG.error("the session of %r is lost, and it cannot be registered again: %s", path, error)


def hold(queries: ZooKeeperQueries, path: str, value: bytes, session: ZooKeeperSession) -> bool:
    """Create the ephemeral node `path` and its parents. Returns False while another session owns the node."""
    if create_with_parents(queries, path, value, ephemeral=True):
        return True
    # The node exists, but it may be ours: created earlier, or by a request whose answer was lost.
    owner = queries.owner(path)
    if owner is None or owner != session.id:
        return False
    [(_, content)] = queries.contents([path])
    return content is not None and (content.value == value or queries.change(path, value))


def create_with_parents(queries: ZooKeeperQueries, path: str, value: bytes, *, ephemeral: bool = False) -> bool | None:
    """Create a node, and its persistent parents if they do not exist.

    Returns False if the node exists already, None if another client deletes its parents at the same time.

    Raises:
        RegistryError: the chroot does not exist. It is never created here; a genuine broker fails without it, too.
    """
    created = queries.create(path, value, ephemeral=ephemeral)
    if created is not None:
        return created
    names = path.split("/")[1:-1]
    for depth in range(1, len(names) + 1):
        if queries.create("/" + "/".join(names[:depth])) is None:
            raise RegistryError("the chroot of the ZooKeeper connect string does not exist")
    return queries.create(path, value, ephemeral=ephemeral)
