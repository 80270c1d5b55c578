"""A ZooKeeper session that is broken, expired, silent, forked or closed."""

import logging
import multiprocessing
import signal
import socketserver
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kazoo.protocol.connection import _CONNECTION_DROP

from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.zookeeper.session import ZooKeeperQueries, ZooKeeperSession
from kafka_io.zookeeper.zookeeper import ZooKeeper
from resources.machines.zookeeper_server import ZooKeeperServer

pytestmark = pytest.mark.zookeeper


# fault Z06
def test_an_address_without_a_server_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnavailable, match=r"no ZooKeeper answers at '127\.0\.0\.1:1/kafka'"):
        ZooKeeperSession("127.0.0.1:1/kafka", timeout_s=0.3, session_timeout_s=2)


# fault Z10
@pytest.mark.parametrize(
    "answer", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfb", b"\0\0\0\0", b"HTTP/1.1 400 Bad Request\r\n"]
)
def test_a_server_with_another_protocol_is_unavailable(answer: bytes) -> None:
    class Hostile(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1024)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Hostile) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        try:
            with pytest.raises(RegistryUnavailable):
                ZooKeeperSession(f"127.0.0.1:{server.server_address[1]}", timeout_s=1, session_timeout_s=2)
        finally:
            server.shutdown()


@pytest.mark.parametrize("connect", ["", "/kafka", "a:port", "a:99999"])
def test_a_connect_string_of_another_form_is_refused(connect: str) -> None:
    with pytest.raises(RegistryError, match="is not host:port"):
        ZooKeeperSession(connect, timeout_s=0.3, session_timeout_s=2)


# fault Z01
def test_a_scan_that_loses_its_session_starts_again(
    monkeypatch: pytest.MonkeyPatch, kafka: Any, zookeeper: ZooKeeper, expire: Callable[[ZooKeeper], None]
) -> None:
    kafka.create("/brokers/topics/clicks/0", b"2", makepath=True)
    scans = []
    original = ZooKeeperQueries.contents

    def contents(self: ZooKeeperQueries, paths: Any) -> Any:
        listed = list(paths)
        if "/brokers/topics/clicks/0" in listed:
            scans.append(zookeeper._session.id)
            if len(scans) == 1:
                kafka.create("/brokers/topics/views/0", b"1", makepath=True)
                expire(zookeeper)
        return original(self, listed)

    monkeypatch.setattr(ZooKeeperQueries, "contents", contents)
    topics = zookeeper.topics().entries
    assert [(topic.name, len(topic.partitions)) for topic in topics] == [("clicks", 2), ("views", 1)]
    assert len(set(scans)) == 2


# fault Z01
def test_a_connection_that_breaks_each_time_ends_in_one_error(zookeeper: ZooKeeper) -> None:
    tries = []

    def ask(queries: ZooKeeperQueries) -> None:
        tries.append(1)
        client = zookeeper._session._client
        under_way = client.handler.async_result()
        client._call(_CONNECTION_DROP, under_way)  # kazoo's own way of losing the connection over a request
        queries._answer("/", under_way)

    with pytest.raises(RegistryUnavailable, match="broke 3 times"):
        zookeeper._session.in_one_session(ask)
    assert len(tries) == 3
    assert zookeeper._session.in_one_session(lambda queries: queries.exists("/"))


# fault Z06
def test_a_silent_server_is_unavailable(tmp_path: Path) -> None:
    with ZooKeeperServer(None, tmp_path) as server, ZooKeeper.open(server.connect, timeout_s=2) as zookeeper:
        assert server._jvm is not None
        server._jvm.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(RegistryUnavailable, match="did not answer a request for '/"):
                zookeeper.topics()
        finally:
            server._jvm.send_signal(signal.SIGCONT)
        with pytest.raises(RegistryError, match="not a Kafka registry"):
            zookeeper.topics()


# fault Z09
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from Python 3.12 on: what we forbid is what we test
def test_a_session_is_refused_after_a_fork(zookeeper: ZooKeeper, kafka: Any) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def ask() -> None:
        try:
            zookeeper.topics()
        except RegistryError as error:
            answers.put(str(error))
        zookeeper.close()

    child = context.Process(target=ask)
    child.start()
    child.join(30)
    with closing(answers):
        assert "open another after a fork" in answers.get()
    assert zookeeper.topics().entries == ()


def test_a_closed_session_is_refused(chroot: str) -> None:
    zookeeper = ZooKeeper.open(chroot)
    zookeeper.close()
    zookeeper.close()
    with pytest.raises(RegistryError, match="closed"):
        zookeeper.topics()


def test_no_thread_remains_after_close(chroot: str) -> None:
    before = set(threading.enumerate())
    with ZooKeeper.open(chroot) as zookeeper:
        zookeeper.watch(lambda: None)
    with pytest.raises(RegistryUnavailable):
        ZooKeeper.open("127.0.0.1:1", timeout_s=0.1)
    assert set(threading.enumerate()) <= before


def test_a_lost_connection_is_not_logged_as_a_warning(
    kafka: Any, zookeeper: ZooKeeper, expire: Callable[[ZooKeeper], None], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="kafka_io"):
        expire(zookeeper)
        assert zookeeper.topics().entries == ()
    ours = [record for record in caplog.records if record.name.startswith("kafka_io")]
    assert any("expired" in record.getMessage() for record in ours)
    assert {record.levelno for record in ours} <= {logging.DEBUG, logging.INFO, 5}
