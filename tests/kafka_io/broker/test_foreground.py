"""The broker as a process: it says when it is ready, ends in order when told, and loses nothing visible when killed."""

import contextlib
import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_io.broker.server import BrokerServer
from kafka_io.v07.messages import LATEST_TIME, Produce
from tests.kafka_io.broker.conftest import StartBroker
from tests.kafka_io.broker.talk import TIMEOUT_S, Client, message, numbered

Connect = Callable[[BrokerServer], Client]

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
import threading
from pathlib import Path
from kafka_io.broker.config import BrokerConfig
from kafka_io.broker.foreground import run_foreground
data_dir, interval_ms = Path(sys.argv[1]), int(sys.argv[2])
run_foreground(BrokerConfig(broker_id=5, data_dir=data_dir, segment_bytes=20_000, flush_interval_ms=interval_ms))
"""


@contextmanager
def broker_process(data_dir: Path, *, flush_interval_ms: int) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A broker in a process of its own, and its port."""
    command = [sys.executable, "-c", PROGRAM, str(data_dir), str(flush_interval_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready.startswith("penstock broker 5 ready on 127.0.0.1:")
            yield process, int(ready.rpartition(":")[2])
        finally:
            process.kill()


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(
    start_broker: StartBroker, connect: Connect, tmp_path: Path, told: signal.Signals
) -> None:
    """Nothing but the stop flushes here."""
    with broker_process(tmp_path, flush_interval_ms=10**9) as (process, port), Client(port) as client:
        client.produce("clicks", *numbered(3))
        process.send_signal(told)
        assert process.wait(TIMEOUT_S) == 0
    assert connect(start_broker(data_dir=tmp_path)).fetch("clicks") == b"".join(numbered(3))


def test_what_was_once_fetched_survives_kill_9_in_the_midst_of_producing(
    start_broker: StartBroker, connect: Connect, tmp_path: Path
) -> None:
    """The rest of the log is whole messages, in the order they were sent."""
    with broker_process(tmp_path, flush_interval_ms=5) as (process, port), Client(port) as producer:
        feeding = threading.Thread(target=feed, args=(producer,))
        feeding.start()
        with Client(port) as reader:
            seen = b""
            while len(seen) < 100_000:
                seen += reader.fetch("clicks", len(seen))
        process.kill()
        feeding.join()
    client = connect(start_broker(data_dir=tmp_path))
    end, *starts = client.offsets("clicks", LATEST_TIME)
    kept = b"".join(client.fetch("clicks", start, max_size=10**8) for start in reversed(starts))
    assert len(seen) <= end == len(kept)
    assert kept.startswith(seen)
    assert kept == b"".join(map(sent, range(end // len(sent(0)))))


def sent(number: int) -> bytes:
    """The message of this number; all are of one size."""
    return message(f"{number:09d}".encode() * 30)


def feed(producer: Client) -> None:
    """Publish until the broker dies."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for first in itertools.count(step=10):
            producer.send(Produce("clicks", 0, b"".join(map(sent, range(first, first + 10)))))
