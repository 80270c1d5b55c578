"""The Dagster resource: what it opens, and with how much patience."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resources import penstock
from resources.penstock import PenstockResource
from resources.settings import Caps, Settings


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Caps]:
    """The caps with which clusters are opened."""
    caps: list[Caps] = []

    @contextmanager
    def opened(settings: Settings, name: str) -> Iterator[Any]:
        assert name == "main"
        caps.append(settings.caps)
        yield None

    monkeypatch.setattr(penstock, "open_cluster", opened)
    return caps


@pytest.mark.parametrize(
    ("said", "glimpsed"),
    [("", (10.0, 2)), ("[caps]\nrequest_timeout_s = 3\nattempts = 1\n", (3.0, 1))],
)
def test_a_glimpse_has_less_patience_than_a_load_and_never_more_than_the_settings(
    tmp_path: Path, asked: list[Caps], said: str, glimpsed: tuple[float, int]
) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "b:9092"\n{said}')
    resource = PenstockResource(settings_file=str(file))
    with resource.cluster("main"), resource.glimpse("main"):
        pass
    load, glimpse = asked
    assert load == resource.settings().caps
    assert (glimpse.request_timeout_s, glimpse.attempts) == glimpsed
