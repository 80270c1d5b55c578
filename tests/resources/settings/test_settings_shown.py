"""Shown settings contain no secrets, and are a settings file that can be loaded."""

import tomllib
from pathlib import Path

import pytest

from resources.settings.settings import Settings
from resources.settings.settings_reference import EXAMPLE
from resources.settings.settings_shown import as_toml, shown

MINIMAL = {"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:1"}}}


def test_the_shown_example_loads_as_the_same_settings(tmp_path: Path) -> None:
    settings = Settings.load(EXAMPLE)
    file = tmp_path / "shown.toml"
    file.write_text(as_toml(shown(settings)))
    assert Settings.load(file) == settings


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"lake_options": {"aws_secret_access_key": "x"}}, 'lake_options.aws_secret_access_key = "***"'),
        ({"lake_options": {"AZURE_STORAGE_SAS_TOKEN": "x"}}, 'lake_options.AZURE_STORAGE_SAS_TOKEN = "***"'),
        ({"lake_options": {"aws_region": "eu"}}, 'lake_options.aws_region = "eu"'),
        ({"spark": {"remote": "sc://h:1/;token=x;a=b"}}, 'spark.remote = "sc://h:1/;token=***;a=b"'),
        ({"spark": {"spark.ssl.keyStorePassword": "x"}}, 'spark."spark.ssl.keyStorePassword" = "***"'),
        ({"lake": "s3://me:x@host/lake"}, 'lake = "s3://***@host/lake"'),
    ],
)
def test_values_that_may_be_secrets_are_masked(given: dict[str, object], line: str) -> None:  # fault X01
    text = as_toml(shown(Settings.model_validate({**MINIMAL, **given})))
    assert line in text.splitlines()
    assert tomllib.loads(text)
