"""The servers of the demo, each in its own process: an embedded ZooKeeper and two brokers of generation 0.7."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from resources.processes import dying_with_parent, end

BROKERS = 2
PARTITIONS = 2


@contextmanager
def servers(home: Path, zookeeper_port: int) -> Iterator[None]:
    """Run all servers for the length of a `with` block. Their data and logs are in `home`.

    Raises:
        RuntimeError: a server did not start. The message names its log.
    """
    with ExitStack() as running:
        running.enter_context(
            _server("zookeeper", ["--port", str(zookeeper_port), "--data-dir", str(home / "zookeeper")], home)
        )
        for number in range(BROKERS):
            name = f"broker-{number}"
            address = ["--port", "0", "--data-dir", str(home / name), "--zookeeper", f"127.0.0.1:{zookeeper_port}"]
            options = ["--broker-id", str(number), "--partitions", str(PARTITIONS), *address]
            running.enter_context(_server("broker", options, home, log=name))
        yield


@contextmanager
def _server(command: str, options: Sequence[str], home: Path, log: str | None = None) -> Iterator[None]:
    log_file = home / "logs" / f"{log or command}.log"
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "pipelines", command, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - it makes two system calls, which were looked up before the fork
        )
    try:
        assert process.stdout is not None
        _wait_until_ready(process.stdout, command, log_file)
        yield
    finally:
        end(process)


def _wait_until_ready(output: IO[bytes], command: str, log_file: Path) -> None:
    """Wait for the line that a server prints when it is ready. A server that fails closes its output instead."""
    if not output.readline():
        raise RuntimeError(f"the {command} did not start; see {log_file}")
