"""`python -m tests.brokers.run 3.9.1 COMMAND...`: starts a real broker, runs the command, and stops the broker.

The command gets the address as `--zookeeper` or `--bootstrap`, after its own arguments.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from resources.machines.processes import dying_with_parent
from resources.machines.zookeeper_server import ZooKeeperServer
from tests.brokers.real import RealBroker
from tests.brokers.releases import RELEASES

_PARTITIONS = "2"  # of a topic that the broker creates when it receives the first message


def main(version: str, *command: str) -> int:
    """Run the command while the broker runs; return the command's exit code."""
    if version not in RELEASES or not command:
        sys.exit(f"give a version, one of {', '.join(RELEASES)}, and a command")
    with ExitStack() as running:
        folder = Path(running.enter_context(TemporaryDirectory(prefix="penstock-broker-")))
        zookeeper = None
        if RELEASES[version].modes[-1] == "zookeeper":
            server = running.enter_context(ZooKeeperServer(None, folder / "zookeeper"))
            zookeeper = f"{server.connect}/kafka"
        config = {"num.partitions": _PARTITIONS}
        broker = running.enter_context(RealBroker(version, folder / "broker", zookeeper=zookeeper, config=config))
        address = ["--zookeeper", zookeeper] if zookeeper else ["--bootstrap", broker.bootstrap]
        return _run([*command, *address])


def _run(command: Sequence[str]) -> int:
    """Run the command. Ctrl-C ends only the command; the broker is stopped afterwards."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return subprocess.run(command, check=False, preexec_fn=dying_with_parent()).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
