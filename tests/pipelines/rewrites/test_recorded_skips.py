"""A replay skips what loads have skipped by choice, and nothing of which the table has rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.verify.verify import verify
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding, numbered, table, values
from tests.pipelines.fetch.test_unreadable import flipped, kept, load
from tests.pipelines.loaded import Loaded


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """A cluster whose only log has a corrupt batch, with the offsets 10 to 14."""
    with FakeCluster(logs={0: flipped(holding(0, 20), 2)}) as fake:
        yield fake


def topic(fake: FakeCluster, folder: Path, *, choices: str = "") -> Loaded:
    """The topic, for a replay with these choices in the settings."""
    loaded = Loaded(folder / "penstock.toml")
    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    cluster = f'[clusters.main]\nbootstrap = "{bootstrap}"\n'
    loaded.settings.write_text(f'lake = "{folder}"\n{cluster}{choices}[caps]\nattempts = 1\n')
    return loaded


@pytest.mark.slow
@pytest.mark.parametrize("choices", ["", '[choices]\non_corrupt = "skip"\n'], ids=["recorded", "set"])
def test_a_replay_skips_what_a_load_skipped(choices: str, fake: FakeCluster, tmp_path: Path) -> None:  # fault E10
    assert load(fake, tmp_path, on_corrupt="skip").error is None
    rows, quarantine = values(tmp_path), kept(tmp_path)
    replayed = topic(fake, tmp_path, choices=choices)
    same = replayed.replay("earliest", "latest")
    assert (same.error, same.changed, kept(tmp_path)) == (None, False, quarantine)
    replayed.handle.delete('"offset" = 17')
    result = replayed.replay("earliest", "latest")
    assert (result.error, result.changed, values(tmp_path)) == (None, True, rows)
    assert result.partitions[0].gaps == {"corrupt": 5}
    snapshot = replayed.table.snapshot()
    assert snapshot.entry is not None
    assert [(choice.setting, choice.start, choice.stop) for choice in snapshot.entry.choices] == [
        ("on_corrupt", 10, 15)
    ]
    assert verify(table(tmp_path)).problems == ()


def test_a_replay_skips_no_rows_that_the_table_has(fake: FakeCluster, tmp_path: Path) -> None:  # fault E10
    assert load(fake, tmp_path, on_corrupt="skip").error is None
    fake.logs[0] = flipped(fake.logs[0], 0)
    rows = values(tmp_path)
    for choices, reason in (
        ("", 'no load has skipped it: on_corrupt = "skip" in [choices] allows that'),
        ('[choices]\non_corrupt = "skip"\n', "and the table has rows of it"),
    ):
        refused = topic(fake, tmp_path, choices=choices).replay("earliest", "latest")
        assert reason in str(refused.error)
    assert values(tmp_path) == rows


def test_a_replay_of_a_table_without_skips_stops_at_a_corrupt_batch(tmp_path: Path) -> None:  # fault E10
    with FakeCluster(logs={0: holding(0, 20)}) as fake:
        assert load(fake, tmp_path).error is None
        fake.logs[0] = flipped(fake.logs[0], 2)
        assert "Corrupt: wrong CRC" in str(topic(fake, tmp_path).replay("earliest", "latest").error)
        assert values(tmp_path) == numbered(0, 20)
