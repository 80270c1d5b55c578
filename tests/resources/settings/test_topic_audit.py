"""A section with `audit` names the topic of its producers' counts, which needs no section of its own to be typed."""

from pathlib import Path

import pytest

from resources.settings.settings import Settings, SettingsError
from resources.settings.topic_audit import COUNT_COLUMNS, TopicAudit

AUDITED = '[topics.clicks]\nevent_time = "timestamp"\naudit = "counts"\n'
COLUMNS = ", ".join(f'{name} = "{kind}"' for name, kind in COUNT_COLUMNS.items())
OWN_FORMAT = f'[topics.counts]\nformat = "json"\ncolumns = {{ {COLUMNS}, host = "string" }}\n'


def load(folder: Path, text: str, *, topics: str = "") -> Settings:
    file = folder / "penstock.toml"
    file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:9092"\n{topics}{text}')
    return Settings.load(file)


@pytest.mark.parametrize("section", ["", "[topics.counts]\nowners = ['team:web']\n", '[topics."c.*"]\n'])
def test_the_topic_with_the_counts_is_json_with_their_columns(tmp_path: Path, section: str) -> None:
    settings = load(tmp_path, AUDITED + section)
    counts = settings.format_of("counts")
    assert (counts.format, counts.columns, counts.encoding) == ("json", COUNT_COLUMNS, "json")
    assert (counts.event_time, counts.max_bad_share) == ("timestamp", 1)
    assert settings.options_of("counts").audit == TopicAudit()
    clicks = settings.options_of("clicks")
    assert (clicks.format.format, clicks.audit) == (
        "raw",
        TopicAudit(audit="counts", audit_share=0.999, audit_hours=24),
    )


def test_what_its_own_section_says_is_kept(tmp_path: Path) -> None:
    counts = load(tmp_path, f"{AUDITED}{OWN_FORMAT}max_bad_share = 0.5\nallowed_lateness_minutes = 3\n").format_of(
        "counts"
    )
    assert (counts.columns["host"], counts.max_bad_share, counts.event_time) == ("string", 0.5, "timestamp")
    assert counts.allowed_lateness_ms == 180_000


def test_a_section_that_matches_its_own_counts_audits_only_the_other_topics(tmp_path: Path) -> None:
    settings = load(tmp_path, AUDITED.replace("clicks", '"c.*"'))
    audits = [settings.options_of(topic).audit.audit for topic in ("clicks", "counts")]
    assert audits == ["counts", None]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[topics.clicks]\naudit = "counts"', "topics.clicks: `audit` needs an `event_time`"),
        ("[topics.clicks]\naudit_share = 0.9", "topics.clicks: `audit_share` needs an `audit`"),
        ("[topics.clicks]\naudit_hours = 3", "topics.clicks: `audit_hours` needs an `audit`"),
        (f"{AUDITED}audit_share = 0", "topics.clicks.audit_share must be greater than 0"),
        (f"{AUDITED}audit_hours = 0", "topics.clicks.audit_hours must be at least 1"),
        (AUDITED.replace("counts", "clicks"), "topics.clicks.audit: a topic cannot hold the counts of its own records"),
        (f'{AUDITED}[topics.counts]\nformat = "text"', "clicks.audit: the topic 'counts' cannot hold counts: it has a"),
        (f'{AUDITED}[topics.counts]\nformat = "json"', "clicks.audit: the topic 'counts' cannot hold counts: it has a"),
        (f'{AUDITED}{OWN_FORMAT}event_time = "host"', 'cannot hold counts: its `event_time` must be "timestamp"'),
    ],
)
def test_counts_that_cannot_work_are_refused_with_their_place(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(SettingsError, match=error):
        load(tmp_path, text)


def test_counts_must_be_allowed_where_their_topic_is(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"topics\.clicks\.audit: the settings do not allow the topic 'counts'"):
        load(tmp_path, AUDITED, topics='[topics]\nallow = "clicks"\n')
    load(tmp_path, AUDITED, topics='[topics]\nallow = "c.*s"\n')
    load(tmp_path, AUDITED, topics='[topics]\nallow = "views"\n')
