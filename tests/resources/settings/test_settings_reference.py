"""The settings reference contains every key with its section, type and default."""

import pytest

from resources.settings.section import Section
from resources.settings.settings import DEFAULT_PATH, PATH_VARIABLE, Settings
from resources.settings.settings_reference import Key, reference, sections

PAGES = sections(Settings)
KEYS = {f"{page.places[0]}.{key.name}": key for page in PAGES for key in page.keys}


def test_a_section_that_can_appear_in_several_places_is_described_once() -> None:
    assert [page.places for page in PAGES if "choices" in page.places] == [("choices", "clusters.NAME.choices")]


def test_the_meaning_of_every_key_is_a_sentence() -> None:
    assert [name for name, key in KEYS.items() if not key.meaning.endswith((".", ".)"))] == []


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        (".lake", "text", ""),
        (".spark", "section of text", "-"),
        (".schedules", "section for each name", "-"),
        ("choices.on_expired", '`"fail"` or `"skip"`', '`"fail"`'),
        ("caps.records_per_run", "whole number above 0 up to 1_000_000_000_000_000", "-"),
        ("caps.slice_records", "whole number above 0 up to 1_000_000_000_000_000", "`2_000_000`"),
        ("limits.retention_left", "number from 0 up to 1", "`0.5`"),
        ("clusters.NAME.generation", '`"0.7"` or `"0.8-0.9"` or `"modern"`', "-"),
        ("clusters.NAME.security", "section", "-"),
        ("registries.NAME.tls.ca", "path, relative to this file", "-"),
        ("clusters.NAME.security.sasl.password", "`env:NAME`, `file:PATH` or `command:LINE`", "-"),
        ("clusters.NAME.security.sasl.allow_secret_over_plaintext", "true or false", "`false`"),
        ("topics.allow", "list of text", '`[".*"]`'),
    ],
)
def test_a_key_has_its_type_and_default(name: str, kind: str, default: str) -> None:
    key = KEYS[name]
    assert key == Key(name=key.name, kind=kind, default=default, meaning=key.meaning)


def test_pydantic_reads_no_source_for_the_meanings() -> None:
    """Every command makes the sections at its start, and only the reference needs what their keys mean."""
    readers = [section for section in Section.__subclasses__() if section.model_config.get("use_attribute_docstrings")]
    assert readers == []
    assert KEYS["caps.slice_bytes"].meaning.startswith("Kafka 0.7: bytes of the log that one task loads")
    assert KEYS["registries.NAME.tls.ca"].meaning  # of a dataclass
    assert KEYS["topics.NAME.format"].meaning  # of a part


def test_the_page_has_one_table_row_for_each_key() -> None:
    lines = [line for line in reference(Settings).splitlines() if line.startswith("| `")]
    assert len(lines) == len(KEYS)


def test_the_page_says_where_the_file_is() -> None:
    head, _, _ = reference(Settings).partition("\n## ")
    assert all(f"`{name}`" in head for name in (PATH_VARIABLE, DEFAULT_PATH))
