"""`[registries.<name>]` in the settings file, and the client that it configures."""

import traceback
from pathlib import Path

import pytest

from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Tls
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from resources.kafka import open_schema_registry
from resources.settings.settings import Settings, SettingsError

LAKE = """
lake = "lake"
[clusters.prod]
bootstrap = "kafka:9093"
"""


def load(tmp_path: Path, registries: str) -> Settings:
    file = tmp_path / "penstock.toml"
    file.write_text(LAKE + registries)
    return Settings.load(file)


def test_several_registries_are_read_with_absolute_paths(tmp_path: Path) -> None:
    registries = """
    [registries.main]
    url = "https://r:8081"
    username = "loader"
    password = "file:secret"
    tls = { ca = "/etc/ca.pem", certificate = "me.pem", key_password = "env:P" }
    [registries.other]
    url = "https://other"
    token = "env:TOKEN"
    tls = true
    [registries.plain]
    url = "http://plain"
    tls = false
    """
    assert load(tmp_path, registries).registries == {
        "main": SchemaRegistrySettings(
            url="https://r:8081",
            username="loader",
            password=SecretReference("file", str(tmp_path / "secret")),
            tls=Tls(ca="/etc/ca.pem", certificate=str(tmp_path / "me.pem"), key_password=SecretReference("env", "P")),
        ),
        "other": SchemaRegistrySettings(url="https://other", token=SecretReference("env", "TOKEN"), tls=Tls()),
        "plain": SchemaRegistrySettings(url="http://plain"),
    }
    assert load(tmp_path, "").registries == {}


@pytest.mark.parametrize(
    ("registry", "message"),
    [
        ('url = "https://me:canary@r"', "registries.main: url: write"),
        ('url = "https://r"\ntoken = "canary"', "registries.main.token: write a reference instead of the secret"),
        ('url = "http://r"\ntoken = "env:T"', "registries.main: http:// lets everyone on the way read the secret"),
        ('url = "https://r"\nusername = "canary"', "registries.main: `username` and `password` belong together"),
        ('url = "https://r"\npasswort = "canary"', "registries.main.passwort is not a setting"),
        ('url = "https://r"\ntls = "canary"', "registries.main.tls must be a section"),
        ('token = "env:T"', "registries.main.url is missing"),
    ],
)
def test_an_error_names_the_key_and_never_repeats_the_value(
    tmp_path: Path, registry: str, message: str
) -> None:  # faults X01, X08
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, f"[registries.main]\n{registry}")
    assert message in str(raised.value)
    assert "canary" not in "".join(traceback.format_exception(raised.value))


def test_a_name_that_no_registry_may_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"registries\.Main: a name has lower-case letters"):
        load(tmp_path, '[registries.Main]\nurl = "https://r"')


def test_a_registry_is_opened_by_its_name(tmp_path: Path) -> None:
    with EmbeddedSchemaRegistry() as embedded:
        embedded.register("clicks-value", '"string"')
        settings = load(tmp_path, f'[registries.main]\nurl = "{embedded.url}"')
        assert open_schema_registry(settings, "main").subjects() == ["clicks-value"]
    with pytest.raises(SettingsError, match="no registry 'mian' in the settings; did you mean 'main'"):
        open_schema_registry(settings, "mian")
    with pytest.raises(SettingsError, match="the registries are: none"):
        open_schema_registry(load(tmp_path, ""), "main")
