"""The Python on the pages runs, and prints what it should, against a broker."""

from pathlib import Path

import pytest

from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.server import ModernBrokerServer
from tests.docs.pages import PAGES, Block, blocks

SHOWN = [block for page in PAGES for block in blocks(page) if block.language == "python"]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.page)
def test_python_on_a_page_does_what_it_shows(block: Block, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path)) as broker:
        text = block.text.replace("localhost:9092", f"127.0.0.1:{broker.port}")
        exec(compile(text, block.page, "exec"), {})
    told = capsys.readouterr().out
    assert "Delivered(topic='clicks'" in told
    assert "value: [[6F6E65]]" in told  # one


def test_the_front_page_shows_the_library() -> None:
    assert [block.page for block in SHOWN] == ["README.md"]
