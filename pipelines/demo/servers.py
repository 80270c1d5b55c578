"""The servers of the demo, each in its own process: an embedded ZooKeeper and two brokers of generation 0.7."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from resources.processes import dying_with_parent, end

BROKERS = 2
PARTITIONS = 2


@contextmanager
def servers(home: Path, zookeeper_port: int) -> Iterator[None]:
    """Run all servers for the length of a `with` block. Their data and logs are in `home`.

    Raises:
        RuntimeError: a server did not start. The message names its log.
    """
    with ExitStack() as stack:
        data_dir = str(home / "zookeeper")
        stack.enter_context(
            _server(home, "zookeeper", "zookeeper", "--port", str(zookeeper_port), "--data-dir", data_dir)
        )
        for number in range(BROKERS):
            name = f"broker-{number}"
            address = ["--port", "0", "--zookeeper", f"127.0.0.1:{zookeeper_port}", "--data-dir", str(home / name)]
            options = ["--broker-id", str(number), "--partitions", str(PARTITIONS), *address]
            stack.enter_context(_server(home, name, "broker", *options))
        yield


@contextmanager
def running(command: Sequence[str], log: Path, *, stdout: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python module with arguments for the length of a `with` block.

    Its output is appended to `log`, except that `stdout` can be a pipe.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - our own commands, and Dagster's
            [sys.executable, "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=output if stdout is None else stdout,
            stderr=output,
            process_group=0,  # Ctrl-C must not reach the process; `end` ends it
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - it makes two system calls, which were looked up before the fork
        )
    try:
        yield process
    finally:
        end(process)


@contextmanager
def _server(home: Path, name: str, *command: str) -> Iterator[None]:
    """A server. A line on its standard output says that it is ready; a server that fails closes the output instead."""
    log = home / "logs" / f"{name}.log"
    with running(["pipelines", *command], log, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"the {command[0]} did not start; see {log}")
        yield
