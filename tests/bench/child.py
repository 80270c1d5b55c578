"""One loader in a process of its own: `python -m tests.bench.child <module of peers> <job>`, with the usage printed."""

import json
import sys
from importlib import import_module

from tests.bench.cases import Job
from tests.bench.measure import measured


def main() -> None:
    """Get ready, load, tell what the load cost."""
    module, text = sys.argv[1:]
    with import_module(f"tests.bench.peers.{module}").ready(Job.of(json.loads(text))) as load:
        with measured() as clock:
            load()
        assert clock.usage is not None
        clock.usage.tell()


if __name__ == "__main__":
    main()
