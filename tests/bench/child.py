"""Run one loader in this process and print its usage: `python -m tests.bench.child <module of peers> <job>`."""

import json
import sys
from importlib import import_module

from tests.bench.cases import Job
from tests.bench.measure import measured


def main() -> None:
    """Prepare the loader, load, and print the usage of the load."""
    module, text = sys.argv[1:]
    with import_module(f"tests.bench.peers.{module}").ready(Job.of(json.loads(text))) as load:
        with measured() as clock:
            load()
        assert clock.usage is not None
        clock.usage.write()


if __name__ == "__main__":
    main()
