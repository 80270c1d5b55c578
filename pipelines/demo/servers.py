"""The servers of the demo, each in its own process.

They are a schema registry, a modern broker, and a cluster of Kafka 0.7: a ZooKeeper and two brokers.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipelines.demo.state import DemoState
from resources.machines.processes import dying_with_parent, end

BROKERS = 2
PARTITIONS = 2


@contextmanager
def servers(state: DemoState) -> Iterator[None]:
    """Run the servers for the length of a `with` block. A running Kafka cluster replaces only the one of Kafka 0.7.

    Raises:
        RuntimeError: a server did not start. The message names its log.
    """
    with ExitStack() as stack:
        stack.enter_context(_server(state, "registry", "registry", "--port", str(state.registry_port)))
        modern = ["--port", str(state.broker_port), "--generation", "modern", "--partitions", str(PARTITIONS)]
        stack.enter_context(_server(state, "broker-modern", "broker", "--broker-id", "0", *modern))
        if state.has_kafka:
            stack.enter_context(_server(state, "zookeeper", "zookeeper", "--port", str(state.zookeeper_port)))
            address = ["--port", "0", "--zookeeper", f"127.0.0.1:{state.zookeeper_port}"]
            for number in range(BROKERS):
                options = ["--broker-id", str(number), "--partitions", str(PARTITIONS), *address]
                stack.enter_context(_server(state, f"broker-{number}", "broker", *options))
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
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def _server(state: DemoState, name: str, *command: str) -> Iterator[None]:
    """A server with its data in the folder `name`, until the end of a `with` block.

    A line on its standard output says that it is ready; a server that fails closes the output instead.
    """
    log, data_dir = state.logs / f"{name}.log", str(state.home / name)
    with running(["pipelines", *command, "--data-dir", data_dir], log, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"the {command[0]} did not start; see {log}")
        yield
