"""The section `[catalog]`: which catalogs there are, and that no secret stands in the file."""

from pathlib import Path
from typing import Any

import pytest

from resources.settings.settings import Settings, SettingsError


def settings_of(catalog: Any, **others: Any) -> Settings:
    clusters = {"main": {"bootstrap": "127.0.0.1:1"}}
    return Settings.of({"lake": "lake", "clusters": clusters, "catalog": catalog, **others}, folder=Path("/etc"))


def test_a_text_is_the_type() -> None:
    assert settings_of("sqlite").catalog == settings_of({"type": "sqlite"}).catalog


def test_secrets_and_options_are_properties_and_paths_are_absolute() -> None:
    rest = {"type": "rest", "uri": "https://catalog", "credential": "file:client", "warehouse": "w"}
    properties = settings_of({**rest, "options": {"header.x": "env:X"}}).catalog.properties
    assert properties == {"header.x": "env:X", "credential": "file:/etc/client", "warehouse": "w"}


@pytest.mark.parametrize(
    ("catalog", "problem"),
    [
        ("glue", "catalog.type must be 'sqlite', 'sql' or 'rest'"),
        ("sql", 'catalog: uri: set it for `type = "sql"`'),
        ({"uri": "sqlite:///a.db"}, 'catalog: uri: `type = "sqlite"` has its file in the lake'),
        ({"type": "sql", "uri": "postgresql://me:canary@host/db"}, "catalog.uri: has a password in it"),
        ({"type": "sql", "uri": "env:"}, "catalog.uri: "),
        ({"type": "rest", "uri": "https://catalog", "token": "canary"}, "catalog.token: "),
        ({"type": "sql", "uri": "sqlite:///a.db", "token": "env:T"}, 'catalog: token: only `type = "rest"` has it'),
    ],
)
def test_a_wrong_section_is_one_sentence_without_secrets(catalog: Any, problem: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_of(catalog)
    assert problem in str(raised.value)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("section", ["clusters", "topics"])
def test_iceberg_tables_in_an_object_store_need_another_catalog(section: str) -> None:
    others: dict[str, Any] = {"topics": {"clicks": {"table_format": "iceberg"}}}
    if section == "clusters":
        others = {"clusters": {"main": {"bootstrap": "127.0.0.1:1", "table_format": "iceberg"}}}
    with pytest.raises(SettingsError, match="catalog: Iceberg tables in an object store need"):
        settings_of("sqlite", **{"lake": "s3://bucket/lake", **others})
    assert settings_of({"type": "sql", "uri": "env:URI"}, **{"lake": "s3://bucket/lake", **others})
