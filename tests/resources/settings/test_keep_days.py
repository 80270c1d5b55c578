"""`keep_days` of a topic says which rows are old, and what it excludes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resources.settings.settings import Settings, SettingsError


def load(folder: Path, topic: str) -> Settings:
    file = folder / "penstock.toml"
    file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:9092"\n[topics.clicks]\n{topic}')
    return Settings.load(file)


def test_the_first_day_that_stays_is_keep_days_ago(tmp_path: Path) -> None:
    settings = load(tmp_path, "keep_days = 400\n")
    assert settings.options_of("clicks").rows_since == datetime.now(UTC).date() - timedelta(days=400)
    assert settings.options_of("views").rows_since is None


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("keep_days = 0\n", "must be at least 1"),
        ("keep_days = 1.5\n", "must be a whole number"),
        ('keep_days = 5\nformat = "json"\ncolumns = { id = "long" }\nstate = { key = ["id"] }\n', "exclude each other"),
        ('keep_days = 1\nevent_time = "timestamp"\naudit = "counts"\n', "must be longer than `audit_hours`"),
    ],
)
def test_wrong_days_are_refused(tmp_path: Path, topic: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        load(tmp_path, topic)
