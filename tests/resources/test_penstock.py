"""What runs and ticks work with reads the settings once per run, and opens clusters with long or short timeouts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resources import penstock
from resources.penstock import PenstockResource
from resources.settings.settings import Caps, Settings

SETTINGS = 'lake = "lake"\n[clusters.main]\nbootstrap = "b:9092"\n'


@pytest.fixture
def opened_with(monkeypatch: pytest.MonkeyPatch) -> list[Caps]:
    """The caps with which clusters are opened."""
    caps: list[Caps] = []

    @contextmanager
    def open_nothing(settings: Settings, name: str) -> Iterator[Any]:
        assert name == "main"
        caps.append(settings.caps)
        yield None

    monkeypatch.setattr(penstock, "open_cluster", open_nothing)
    return caps


@pytest.mark.parametrize(
    ("caps", "short"),
    [("", (10.0, 2)), ("[caps]\nrequest_timeout_s = 3\nattempts = 1\n", (3.0, 1))],
)
def test_a_short_timeout_is_below_that_of_loads_and_never_above_the_settings(
    tmp_path: Path, opened_with: list[Caps], caps: str, short: tuple[float, int]
) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(SETTINGS + caps)
    resource = PenstockResource(settings_file=str(file))
    with resource.cluster("main"), resource.cluster_with_short_timeout("main"):
        pass
    long_caps, short_caps = opened_with
    assert long_caps == resource.settings().caps
    assert (short_caps.request_timeout_s, short_caps.attempts) == short


def test_a_run_reads_the_settings_once_and_the_next_run_reads_them_again(tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(SETTINGS)
    source = PenstockResource(settings_file=str(file))
    run = source.fresh()
    assert Path(run.settings().lake).name == "lake"
    file.write_text(SETTINGS.replace('"lake"', '"other"'))  # somebody edits the file during the run
    assert Path(run.settings().lake).name == "lake"
    assert Path(source.fresh().settings().lake).name == "other"


def test_inline_settings_need_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inline = Settings.of({"lake": "lake", "clusters": {"main": {"bootstrap": "b:9092"}}}, folder=tmp_path)
    assert PenstockResource(inline=inline).fresh().settings().lake == str(tmp_path / "lake")
