"""The passenger of the demo: exactly her rows go, the summary follows, and the certificate is complete."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.demo import forgotten
from pipelines.demo.forgotten import ForgottenStory, bookings, publish
from pipelines.demo.state import DemoState
from pipelines.verify.verify import verify
from resources.settings.settings import Settings

pytestmark = pytest.mark.slow  # each test fills a table and changes it


@pytest.fixture
def story(tmp_path: Path) -> Iterator[ForgottenStory]:
    """The story with its bookings loaded, on the modern broker of the demo in this process."""
    state = DemoState(home=tmp_path / "demo")
    state.begin(bootstrap="127.0.0.1:1")
    settings = Settings.load(state.settings)
    config = ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker", port=state.broker_port, partitions=2)
    with ModernBrokerServer(config):
        yield ForgottenStory(state=state, settings=settings)


def test_one_passenger_is_forgotten_and_it_is_certified(
    story: ForgottenStory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert story.run()
    output = " ".join(capsys.readouterr().out.split())
    assert "1,000 bookings" in output
    assert "996 bookings" in output
    assert "complete bookings: Penstock has no copy of the rows any more" in output
    assert "passenger42" not in output
    assert [partition.gaps.get("erased", 0) for partition in verify(story.table).partitions if partition.gaps]


def test_a_summary_that_does_not_follow_is_noticed(story: ForgottenStory, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(story.settings, bookings())
    story.load()
    counted = story.summarize()
    monkeypatch.setattr(forgotten, "apply_increment", lambda *_arguments, **_options: None)
    assert not story.forget(counted)


def test_the_bookings_are_of_made_up_passengers() -> None:
    rows: list[dict[str, Any]] = bookings().to_pylist()
    assert len(rows) == 1_000
    assert sum(row["passenger"] == "passenger42@mail.example" for row in rows) == 4
