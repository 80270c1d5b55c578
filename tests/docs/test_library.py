"""The Python code on the pages runs against brokers, and prints what its comments say."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from tests.docs.block_coverage import is_run_in_order
from tests.docs.pages import PAGES, Block, run_blocks

BLOCKS = [
    (f"{block.page}-{number}", block)
    for page in PAGES
    for number, block in enumerate(run_blocks(page, "python"))
    if not block.reads_a_table and not is_run_in_order(block)
]
"""The blocks of Python. Those that read a table are run by the test of their page, such as test_increments_page.py."""


@pytest.fixture
def addresses(tmp_path: Path, chroot: str) -> Iterator[dict[str, str]]:
    """The real address for each address on the pages: of a modern broker, and of a 0.7 broker's ZooKeeper."""
    with ExitStack() as running:
        modern = running.enter_context(
            ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "modern"))
        )
        running.enter_context(BrokerServer07(BrokerConfig07(broker_id=0, data_dir=tmp_path / "v07"), zookeeper=chroot))
        yield {"localhost:9092": f"127.0.0.1:{modern.port}", "localhost:2181": chroot}


@pytest.mark.zookeeper
@pytest.mark.parametrize("block", [block for _, block in BLOCKS], ids=[name for name, _ in BLOCKS])
def test_python_on_a_page_prints_what_it_shows(
    block: Block, addresses: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = block.text
    for address, real_address in addresses.items():
        text = text.replace(address, real_address)
    exec(compile(text, block.page, "exec"), {})
    block.check_output(capsys.readouterr().out)


def test_the_library_page_has_examples() -> None:
    assert sum(name.startswith("docs/library.md-") for name, _ in BLOCKS) > 5
