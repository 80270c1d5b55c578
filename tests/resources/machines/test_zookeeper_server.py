"""The embedded ZooKeeper is ready when it says so, ends with its parent or at a signal, and keeps its data."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_io.zookeeper.zookeeper import ZooKeeper
from resources.machines.zookeeper_server import ZooKeeperNotStarted, ZooKeeperServer

pytestmark = pytest.mark.zookeeper

FOREGROUND = "import sys; from pathlib import Path; from resources.machines.zookeeper_server import run_foreground; "
FOREGROUND += "run_foreground(0, Path(sys.argv[1]))"


@contextmanager
def in_foreground(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of `penstock zookeeper`, and the line that it printed when it was ready."""
    command = [sys.executable, "-c", FOREGROUND, str(data_dir)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, process_group=0) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def stops_listening(address: str) -> bool:
    """Whether nobody listens at the address, now or within half a minute."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.05)
    return False


def test_data_survives_a_stop_and_a_start(tmp_path: Path) -> None:
    server = ZooKeeperServer(None, tmp_path / "new" / "folder")
    for expected in (None, b"kept"):
        with server:
            client = KazooClient(server.connect)
            client.start()
            try:
                value = client.get("/node")[0] if client.exists("/node") else None
                client.ensure_path("/node")
                client.set("/node", b"kept")
            finally:
                client.stop()
                client.close()
            assert value == expected
        assert stops_listening(server.connect)


def test_the_server_listens_only_on_loopback(zookeeper_server: str) -> None:  # fault X11
    port = int(zookeeper_server.rpartition(":")[2])
    with socket.socket() as elsewhere:
        elsewhere.bind(("127.0.0.2", port))  # this fails if the server listens on all addresses
    assert zookeeper_server.startswith("127.0.0.1:")


def test_the_error_names_a_port_that_is_in_use(zookeeper_server: str, tmp_path: Path) -> None:
    port = int(zookeeper_server.rpartition(":")[2])
    with pytest.raises(ZooKeeperNotStarted, match=f"cannot listen on 127.0.0.1 port {port}"):
        ZooKeeperServer(port, tmp_path).start()


def test_the_error_of_a_server_that_ended_names_its_log(tmp_path: Path) -> None:
    (tmp_path / "version-2").write_text("a file where the server wants a directory")
    with pytest.raises(ZooKeeperNotStarted, match=r"ended; its log .*zookeeper\.log says why$"):
        ZooKeeperServer(None, tmp_path).start()
    assert "version-2" in (tmp_path / "zookeeper.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_foreground_server_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    with in_foreground(tmp_path) as (process, line):
        sentence, address = line.rsplit(" ", 1)
        assert sentence == "ZooKeeper is ready on"
        ZooKeeper.open(address).close()
        process.send_signal(number)
        assert process.wait(30) == 0
        assert stops_listening(address)


def test_a_killed_parent_leaves_no_running_server(tmp_path: Path) -> None:
    with in_foreground(tmp_path) as (process, line):
        address = line.rsplit(" ", 1)[1]
        ZooKeeper.open(address).close()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        assert stops_listening(address)


def test_a_foreground_server_that_ends_by_itself_is_an_error(tmp_path: Path) -> None:
    with in_foreground(tmp_path) as (process, _):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        assert process.wait(30) == 1
