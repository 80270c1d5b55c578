"""Run one loader in this process and print its usage: `python -m tests.bench.child <module of peers> <job>`.

Each loader runs in a process of its own, in which pyarrow finds no pandas and cycles are rarely looked for, as in that
of `penstock load` (decision D45).
"""

import json
import sys
from importlib import import_module

from resources.machines import own_process
from tests.bench.cases import Job
from tests.bench.measure import measured


def main() -> None:
    """Prepare the loader, load, and print the usage of the load."""
    module, text = sys.argv[1:]
    own_process.begin()
    own_process.keep_pandas_out()
    with import_module(f"tests.bench.peers.{module}").ready(Job.of(json.loads(text))) as load:
        with measured() as clock:
            load()
        assert clock.usage is not None
        clock.usage.write()


if __name__ == "__main__":
    main()
