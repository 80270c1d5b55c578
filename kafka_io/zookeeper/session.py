"""A session with ZooKeeper. This module alone knows kazoo, and maps its errors to ours.

Every wait has a deadline. A broken connection fails all requests in progress. kazoo then reconnects by itself, and
`in_one_session` sends all requests again. kazoo's `transaction` is never used: with ZooKeeper 3.3 it hangs for ever
[kafka-0.7: Broker registry].
"""

import logging
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import Callback, EventType, KazooState

from kafka_io.errors import RegistryError, RegistryUnavailable

T = TypeVar("T")

_MAX_ATTEMPTS = 3
_MAX_IN_PROGRESS = 200  # requests; each answer can have 1 MB
_RECONNECT = {"max_tries": -1, "delay": 0.2, "max_delay": 5.0}


class _Subdued(logging.LoggerAdapter[logging.Logger]):
    """Logs kazoo's warnings as information. Each lost connection also reaches the caller as an error."""

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log at most at level INFO."""
        super().log(min(level, logging.INFO), msg, *args, **kwargs)


class ZooKeeperSession:
    """An open session under a chroot. It belongs to the process that opened it, whose threads may all use it."""

    def __init__(self, connect: str, *, timeout_s: float, session_timeout_s: float) -> None:
        """Connect to `host:port[,host:port][/chroot]`; `timeout_s` limits this and each call of `in_one_session`.

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
            RegistryError: `connect` has another form.
        """
        logger = _Subdued(logging.getLogger(__name__), {})
        try:
            self._client = KazooClient(connect, timeout=session_timeout_s, connection_retry=_RECONNECT, logger=logger)
        except ValueError as error:
            raise RegistryError(f"{connect!r} is not host:port[,host:port][/chroot]") from error
        self._connect = connect
        self._timeout_s = timeout_s
        self._process = os.getpid()
        self._closed = False
        # start() is not used: it prints a warning about a missing chroot, and waits without a limit for that answer.
        self._live = self._client.start_async()
        try:
            self._wait_until_live(timeout_s)
        except BaseException:
            self.close()
            raise

    @property
    def id(self) -> int | None:
        """The session id, None before the first session. A new id means that the old ephemeral nodes are gone."""
        client_id = self._client.client_id
        return client_id and int(client_id[0])

    def in_one_session(self, action: Callable[["ZooKeeperQueries"], T], *, timeout_s: float | None = None) -> T:
        """Run `action` so that all its queries are answered within one session; otherwise run it again (fault Z01).

        Within a session ZooKeeper never shows an older state than before, whichever server answers. A new session can
        show an older state, so results of two sessions must not be mixed. `timeout_s` replaces the session's own limit.

        Raises:
            RegistryUnavailable: ZooKeeper did not answer in time, or the connection broke at each attempt.
        """
        self._check_usable()
        queries = ZooKeeperQueries(self._client, time.monotonic() + (timeout_s or self._timeout_s))
        broken: RegistryUnavailable | None = None
        for _ in range(_MAX_ATTEMPTS):
            self._wait_until_live(queries.remaining_s())
            session_id = self.id
            try:
                result = action(queries)
            except RegistryUnavailable as error:
                if not queries.remaining_s():
                    raise
                broken = error
                continue
            if session_id is not None and session_id == self.id:
                return result
        raise RegistryUnavailable(
            f"the connection to ZooKeeper at {self._connect!r} broke {_MAX_ATTEMPTS} times during one query"
        ) from broken

    def on_connected(self, action: Callable[[], None]) -> None:
        """Call `action` on kazoo's callback thread whenever the connection is established again."""

        def listen(state: str) -> None:
            if state == KazooState.CONNECTED:
                self._client.handler.dispatch_callback(Callback("session", action, ()))

        self._check_usable()
        self._client.add_listener(listen)

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        """Call `callback` when the children of `path` may have changed.

        This is only a hint: changes in quick succession cause one call, and a node that does not exist is not watched
        (fault Z02).
        """

        def fired(event: Any) -> None:
            if event.type != EventType.NONE:  # NONE: the connection is lost, and this watch with it
                arm()
                callback()

        def arm() -> None:
            self._client.get_children_async(path, watch=fired)

        def rearm() -> None:
            arm()
            callback()

        self.on_connected(rearm)
        arm()

    def close(self) -> None:
        """End the session, which deletes its ephemeral nodes. Calling it again does nothing.

        In a forked child it leaves the session open, because the session belongs to the parent (fault Z09).
        """
        self._closed = True
        if os.getpid() == self._process:
            self._client.stop()
            self._client.close()

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise RegistryError(f"this ZooKeeper session belongs to process {self._process}: open another after a fork")
        if self._closed:
            raise RegistryError("this ZooKeeper session is closed")

    def _wait_until_live(self, timeout_s: float) -> None:
        if not self._live.wait(timeout_s):
            raise RegistryUnavailable(f"no ZooKeeper answers at {self._connect!r} within {self._timeout_s:g} s")


class ZooKeeperNode(NamedTuple):
    """The children of a node, and the zxid of its creation. A node that is created again has another zxid."""

    children: tuple[str, ...]
    created_zxid: int


class NodeContent(NamedTuple):
    """The value of a node, the zxid of its creation, and the number of its children."""

    value: bytes
    created_zxid: int
    child_count: int


class ZooKeeperQueries:
    """Queries that share one deadline. The answer None means that the node does not exist.

    All methods raise RegistryUnavailable if there is no answer, and RegistryError if ZooKeeper refuses. ZooKeeper
    limits the size of requests but not of answers, and kazoo reads answers of any size: a listing of more than 1 MB of
    names works (fault Z05).
    """

    def __init__(self, client: Any, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    def remaining_s(self) -> float:
        """The seconds until the deadline, at least 0."""
        return max(0.0, self._deadline - time.monotonic())

    def sync(self) -> None:
        """Let our server catch up with the leader of the ensemble before the next query (fault Z08)."""
        self._answer("/", self._client.sync_async("/"))

    def exists(self, path: str) -> bool:
        """Whether the node exists."""
        return self._answer(path, self._client.exists_async(path)) is not None

    def owner(self, path: str) -> int | None:
        """The id of the session that owns an ephemeral node."""
        stat = self._answer(path, self._client.exists_async(path))
        return stat and int(stat.ephemeralOwner)

    def node(self, path: str) -> ZooKeeperNode | None:
        """The node at `path`."""
        return next(node for _, node in self.nodes([path]))

    def children(self, path: str) -> tuple[str, ...]:
        """The names of the node's children; none if the node does not exist."""
        node = self.node(path)
        return node.children if node else ()

    def nodes(self, paths: Iterable[str]) -> Iterator[tuple[str, ZooKeeperNode | None]]:
        """Each path with its node, in order. Several requests are in progress at once."""
        for path, answer in self._each(lambda path: self._client.get_children_async(path, include_data=True), paths):
            yield path, answer and ZooKeeperNode(tuple(answer[0]), answer[1].czxid)

    def contents(self, paths: Iterable[str]) -> Iterator[tuple[str, NodeContent | None]]:
        """Each path with the content of its node, in order. Several requests are in progress at once."""
        for path, answer in self._each(self._client.get_async, paths):
            # The value of a node may be null [kafka-0.7: Broker registry].
            yield path, answer and NodeContent(answer[0] or b"", answer[1].czxid, answer[1].numChildren)

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> bool | None:
        """Create a node. Returns False if it exists already, None if its parent does not exist."""
        with _mapped(path):
            try:
                self._client.create_async(path, value, ephemeral=ephemeral).get(timeout=self.remaining_s())
            except NodeExistsError:
                return False
            except NoNodeError:
                return None
        return True

    def change(self, path: str, value: bytes) -> bool:
        """Replace the value of a node, unconditionally. Returns False if the node does not exist."""
        return self._answer(path, self._client.set_async(path, value)) is not None

    def delete(self, path: str) -> None:
        """Delete a node without children. It is no error if the node does not exist."""
        self._answer(path, self._client.delete_async(path))

    def _each(self, send: Callable[[str], Any], paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
        remaining = iter(paths)
        while batch := tuple(islice(remaining, _MAX_IN_PROGRESS)):
            requests = [(path, send(path)) for path in batch]
            for path, answer in requests:
                yield path, self._answer(path, answer)

    def _answer(self, path: str, request: Any) -> Any:
        with _mapped(path):
            try:
                return request.get(timeout=self.remaining_s())
            except NoNodeError:
                return None


@contextmanager
def _mapped(path: str) -> Iterator[None]:
    try:
        yield
    except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
        raise RegistryUnavailable(f"ZooKeeper did not answer a request for {path!r}") from error
    except (NoAuthError, AuthFailedError) as error:
        raise RegistryError(f"ZooKeeper denies access to {path!r}") from error
    except (KazooException, RuntimeError, ValueError, struct.error) as error:
        raise RegistryError(f"ZooKeeper's answer for {path!r} is unusable") from error
