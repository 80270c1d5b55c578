"""A session with ZooKeeper: the only place that knows kazoo. Its errors are mapped here and nowhere else.

Every wait has a deadline. A broken connection fails what was under way; kazoo then reconnects by itself, and `steady`
asks all of it again. kazoo's own `transaction` is never used: ZooKeeper 3.3 lets it hang for ever (facts, 6).
"""

import logging
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self, TypeVar

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

_MOST_ATTEMPTS = 3
_MOST_UNDER_WAY = 200  # answers of up to 1 MB each
_RECONNECT = {"max_tries": -1, "delay": 0.2, "max_delay": 5.0}


class _Subdued(logging.LoggerAdapter[logging.Logger]):
    """kazoo warns of every lost connection; here each one reaches the caller as an error, so it only informs."""

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Nothing above INFO."""
        super().log(min(level, logging.INFO), msg, *args, **kwargs)


class Session:
    """An open session under a chroot. It belongs to the process that opened it; any of its threads may ask."""

    def __init__(self, client: Any, connect: str, *, timeout_s: float) -> None:
        self._client = client
        self._connect = connect
        self._timeout_s = timeout_s
        self._process = os.getpid()
        self._closed = False
        # Not start(): it warns on the terminal of a missing chroot, and waits without end for the answer about it.
        self._live = client.start_async()

    @classmethod
    def open(cls, connect: str, *, timeout_s: float, session_timeout_s: float) -> Self:
        """Connect to `host:port[,host:port][/chroot]`; `timeout_s` bounds this and every call of `steady`.

        Raises:
            RegistryUnavailable: no ZooKeeper answers there.
            RegistryError: `connect` is not of that form.
        """
        logger = _Subdued(logging.getLogger(__name__), {})
        try:
            client = KazooClient(connect, timeout=session_timeout_s, connection_retry=_RECONNECT, logger=logger)
        except ValueError as error:
            raise RegistryError(f"{connect!r} is not host:port[,host:port][/chroot]: {error}") from error
        session = cls(client, connect, timeout_s=timeout_s)
        try:
            session._wait_until_live(timeout_s)
        except BaseException:
            session.close()
            raise
        return session

    @property
    def id(self) -> int | None:
        """The session's number, None without one. With another number, ephemeral nodes of the old one are gone."""
        client_id = self._client.client_id
        return client_id and int(client_id[0])

    def steady(self, ask: Callable[["Asking"], T], *, timeout_s: float | None = None) -> T:
        """What `ask` finds when all of it is answered within one session; else all of it is asked again (Z01).

        Within a session ZooKeeper never shows an older state than before, whichever server answers. A new session
        promises nothing about what the old one saw. `timeout_s` bounds it in the place of the session's own.

        Raises:
            RegistryUnavailable: no whole answer in time, or the connection broke each time.
        """
        self._check_usable()
        asking = Asking(self._client, time.monotonic() + (timeout_s or self._timeout_s))
        broken: RegistryUnavailable | None = None
        for _ in range(_MOST_ATTEMPTS):
            self._wait_until_live(asking.left())
            session_id = self.id
            try:
                found = ask(asking)
            except RegistryUnavailable as error:
                if not asking.left():
                    raise
                broken = error
                continue
            if session_id is not None and session_id == self.id:
                return found
        raise RegistryUnavailable(
            f"the connection to ZooKeeper at {self._connect!r} broke {_MOST_ATTEMPTS} times in the middle of a question"
        ) from broken

    def on_connected(self, act: Callable[[], None]) -> None:
        """Have `act` called, on kazoo's callback thread, whenever the connection is there again."""

        def listen(state: str) -> None:
            if state == KazooState.CONNECTED:
                self._client.handler.dispatch_callback(Callback("session", act, ()))

        self._check_usable()
        self._client.add_listener(listen)

    def watch_children(self, path: str, callback: Callable[[], None]) -> None:
        """Have `callback` called when the children of `path` may have changed.

        A hint and no more: changes in quick succession come as one, and a node that is not there is not watched (Z02).
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
        """End the session, and with it its ephemeral nodes; safe to call again. A forked child leaves it open (Z09)."""
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


@dataclass(frozen=True, slots=True)
class Node:
    """A node's children, and the zxid that made it: the same path with another one is another node."""

    children: tuple[str, ...]
    created_zxid: int


@dataclass(frozen=True, slots=True)
class Content:
    """A node's value, the zxid that made the node, and how many children it has."""

    value: bytes
    created_zxid: int
    child_count: int


class Asking:
    """Questions that share one deadline. What is answered with None is not there.

    All of them raise RegistryUnavailable when there is no answer, RegistryError when it is a refusal. ZooKeeper bounds
    the size of requests and not of answers, and kazoo reads all of them: more than 1 MB of names are listed (Z05).
    """

    def __init__(self, client: Any, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    def left(self) -> float:
        """Seconds left, 0 when none are."""
        return max(0.0, self._deadline - time.monotonic())

    def sync(self) -> None:
        """Have the server we talk to catch up with its leader (Z08)."""
        self._answer("/", self._client.sync_async("/"))

    def exists(self, path: str) -> bool:
        """Whether there is such a node."""
        return self._answer(path, self._client.exists_async(path)) is not None

    def owner(self, path: str) -> int | None:
        """The session whose ephemeral node this is."""
        stat = self._answer(path, self._client.exists_async(path))
        return stat and int(stat.ephemeralOwner)

    def node(self, path: str) -> Node | None:
        """One node."""
        return next(node for _, node in self.nodes([path]))

    def nodes(self, paths: Iterable[str]) -> Iterator[tuple[str, Node | None]]:
        """Each path with its node, in order; several questions are under way at once."""
        for path, answer in self._each(lambda path: self._client.get_children_async(path, include_data=True), paths):
            yield path, answer and Node(tuple(answer[0]), answer[1].czxid)

    def contents(self, paths: Iterable[str]) -> Iterator[tuple[str, Content | None]]:
        """Each path with its node's content, in order; several questions are under way at once."""
        for path, answer in self._each(self._client.get_async, paths):
            # The value of a node may be null (facts, 6).
            yield path, answer and Content(answer[0] or b"", answer[1].czxid, answer[1].numChildren)

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> bool | None:
        """Make a node: True, or False if it was there, or None if its parent is not."""
        with _mapped(path):
            try:
                self._client.create_async(path, value, ephemeral=ephemeral).get(timeout=self.left())
            except NodeExistsError:
                return False
            except NoNodeError:
                return None
        return True

    def change(self, path: str, value: bytes) -> bool:
        """Give a node another value, whatever it had; False if there is no such node."""
        return self._answer(path, self._client.set_async(path, value)) is not None

    def delete(self, path: str) -> None:
        """Delete a node without children; one that is not there stays so."""
        self._answer(path, self._client.delete_async(path))

    def _each(self, ask: Callable[[str], Any], paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
        rest = iter(paths)
        while batch := tuple(islice(rest, _MOST_UNDER_WAY)):
            under_way = [(path, ask(path)) for path in batch]
            for path, answer in under_way:
                yield path, self._answer(path, answer)

    def _answer(self, path: str, under_way: Any) -> Any:
        with _mapped(path):
            try:
                return under_way.get(timeout=self.left())
            except NoNodeError:
                return None


@contextmanager
def _mapped(path: str) -> Iterator[None]:
    try:
        yield
    except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
        raise RegistryUnavailable(f"ZooKeeper gave no answer about {path!r} ({type(error).__name__})") from error
    except (NoAuthError, AuthFailedError) as error:
        raise RegistryError(f"ZooKeeper denies access to {path!r}") from error
    except (KazooException, RuntimeError, ValueError, struct.error) as error:
        raise RegistryError(f"ZooKeeper's answer about {path!r} is no use: {error!r}") from error
