"""`python -m tests.stores [STORE ...]`: run the tests of stores, and write docs/object-stores.md's table of results.

Without names, all stores run. The table is only written if all of them did.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.brokers.matrix import Collector
from tests.stores.servers import STORES, missing
from tests.stores.table import ASKED, PAGE, render, versions, with_table


def main(names: list[str]) -> int:
    """Run the tests; returns pytest's exit code."""
    asked = [name for name in names or STORES if not _is_missing(name)]
    os.environ[ASKED] = ",".join(asked)
    collector = Collector(mark="stores", parameter="store_name")
    code = pytest.main(["-q", "-p", "no:randomly", "-m", "stores", str(Path(__file__).parent)], plugins=[collector])
    if collector.results and set(asked) == set(STORES):
        PAGE.write_text(with_table(PAGE.read_text(), render(collector.results, versions())))
    return int(code)


def _is_missing(name: str) -> bool:
    program = missing(name)
    if program:
        sys.stderr.write(f"{name} is left out: there is no `{program}` on the PATH\n")
    return program is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
