"""`run_foreground`: acknowledged records survive SIGTERM and SIGKILL of the process."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import TIMEOUT_S, Client, batch, expected_values, values

ROOT = Path(__file__).parents[4]
PROGRAM = """
import sys
from pathlib import Path
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
ModernBrokerServer(ModernBrokerConfig(broker_id=5, data_dir=Path(sys.argv[1]))).run_foreground()
"""


@contextmanager
def broker_process(data_dir: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A broker in a process of its own, and its port."""
    command = [sys.executable, "-c", PROGRAM, str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready.startswith("penstock broker 5 ready on 127.0.0.1:")
            yield process, int(ready.rpartition(":")[2])
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_acknowledged_records_survive_the_end_of_the_process(
    start_modern: StartModern, connect: Connect, tmp_path: Path, signal_number: signal.Signals
) -> None:
    with broker_process(tmp_path) as (process, port), Client(port) as client:
        client.create("clicks")
        for first in range(0, 30, 3):
            assert client.produce("clicks", batch(3, first=first)).error_code == 0
        process.send_signal(signal_number)
        assert process.wait(TIMEOUT_S) == (0 if signal_number is signal.SIGTERM else -signal_number)
    restarted_client = connect(start_modern(data_dir=tmp_path))
    assert values(restarted_client.fetch("clicks").records) == expected_values(30)
