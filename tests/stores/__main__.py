"""`python -m tests.stores [STORE ...]`: run the tests of stores, and write docs/object-stores.md's table of results.

Without names, all stores run. A store that does not run keeps its row.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.brokers.matrix import Collector
from tests.stores.servers import STORES, missing
from tests.stores.table import ASKED, PAGE, render, table_of, versions, with_table


def main(names: list[str]) -> int:
    """Run the tests; returns pytest's exit code."""
    asked = [name for name in names or STORES if not _is_missing(name)]
    os.environ[ASKED] = ",".join(asked)
    collector = Collector(mark="stores", parameter="store_name")
    code = pytest.main(["-q", "-p", "no:randomly", "-m", "stores", str(Path(__file__).parent)], plugins=[collector])
    if collector.results:
        page = PAGE.read_text()
        PAGE.write_text(with_table(page, render(collector.results, versions(), table_of(page))))
    return int(code)


def _is_missing(name: str) -> bool:
    program = missing(name)
    if program:
        sys.stderr.write(f"{name} is left out: there is no `{program}` on the PATH\n")
    return program is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
