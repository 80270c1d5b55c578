"""The section `[topics.NAME.load]`: what it refuses, in words that name the setting."""

import tomllib
from pathlib import Path

import pytest

from resources.settings.rules.load_rules import LoadRules
from resources.settings.settings import Settings, SettingsError

SECRETS = """
lake = "lake"
[clusters.main]
bootstrap = "b:1"
[secrets]
people = { id = "k1", key = "file:people.key" }
"""


def settings(text: str, secrets: str = SECRETS) -> Settings:
    return Settings.of(tomllib.loads(secrets + text), folder=Path("/etc/penstock"))


def rules(text: str, topic: str = 'format = "json"') -> LoadRules:
    return settings(f"[topics.t]\n{topic}\n[topics.t.load]\n{text}").format_of("t").load


def test_paths_are_texts_or_nested_tables_and_a_reference_to_a_file_is_absolute() -> None:
    both = rules('mask = { "a.b" = "x", c.d = 1 }\nhash.e.f = "people"')
    assert (both.mask, both.hash) == ({"a.b": "x", "c.d": 1}, {"e.f": "people"})
    format_ = settings('[topics.t]\n[topics.t.load]\nkey = "hash:people"').format_of("t")
    assert str(format_.secrets["people"].key) == "file:/etc/penstock/people.key"
    assert settings("").format_of("t").secrets == {}


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("", True),
        ('drop = "a"', False),
        ('key = "drop"', False),
        ('headers = "a"', True),
        ('drop = "a"\nraw = "keep"', True),
    ],
)
def test_bytes_of_bad_records_are_not_kept_beside_a_rule_by_default(text: str, keeps: bool) -> None:
    assert rules(text).keeps_raw is keeps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('drop = ["a", "A"]', "the field a has two rules"),
        ('drop = "a"\nmask.a.b = 1', "the field a.b is inside of a, which has a rule already"),
        ('drop = "a..b"', "'a..b' is not a path"),
        ('drop = "_kafka_key"', "_kafka_key is no field of a value"),
        ('hash.a = "other"', "topics.t.load: there is no secret 'other' in [secrets]"),
        ('key = "hash"', 'write "keep", "drop", or "hash:" with a name of [secrets]'),
        ('raw = "null"', "must be 'keep' or 'drop'"),
        ("hash.a = 1", "topics.t.load.hash.a must be a text"),
        ('hashes.a = "people"', "is not a setting; did you mean 'hash'?"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        rules(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("topic", "text", "message"),
    [
        ("", 'mask.a = "x"', '`mask` needs a `format` other than "raw"'),
        ("", 'raw = "drop"', '`raw` needs a `format` other than "raw"'),
        ('format = "json"\nkey_format = "text"', 'key = "drop"', "remove `key_format`"),
        ('format = "json"\npartition_by = "day"', 'hash.Day = "people"', "`partition_by` is day, and `hash`"),
        ('format = "json"\nevent_time = "at"', 'drop = "at"', "`event_time` is at, and `drop`"),
        ('format = "json"\nstate = { key = "id" }', "mask.id = 0", "state.key: `mask`"),
        ('state = { key = "key" }', 'key = "drop"', "state.key: `drop`"),
        ('format = "json"\nstate = { key = "id", order = "at.ms" }', 'hash.at = "people"', "state.order: `hash`"),
    ],
)
def test_a_rule_is_refused_that_takes_away_what_another_setting_needs(topic: str, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        rules(text, topic)
    assert message in str(refused.value)


def test_a_key_of_a_state_table_may_be_a_hash() -> None:
    assert rules('hash.id = "people"', 'format = "json"\nstate = { key = "id" }').hash == {"id": "people"}


def test_two_secrets_need_two_ids_and_a_secret_is_a_reference() -> None:
    other = 'others = { id = "k1", key = "env:KEY" }'
    with pytest.raises(SettingsError, match=r"secrets.others.id: the secret 'people' has the id 'k1' too"):
        settings(other)
    with pytest.raises(SettingsError, match="write a reference instead of the secret") as refused:
        settings('others = { id = "k2", key = "geheim-geheim-geheim" }')
    assert "geheim" not in str(refused.value)
