"""`[clusters.<name>.security]` in the settings file: its values, and errors that do not repeat them."""

import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_io.net.secret import SecretReference
from kafka_io.net.security import ClientCredentials, Sasl, Security, Tls
from resources.settings.settings import Settings, SettingsError

CLUSTER = """
lake = "lake"
[clusters.prod]
bootstrap = "kafka:9093"
"""
CLIENT = 'url = "https://x", client_id = "y", client_secret = "env:S"'
TOKEN_SERVER = f'{{ mechanism = "OAUTHBEARER", client_credentials = {{ {CLIENT} }} }}'


def load(tmp_path: Path, security: str) -> Settings:
    file = tmp_path / "penstock.toml"
    file.write_text(f"{CLUSTER}[clusters.prod.security]\n{security}")
    return Settings.load(file)


def read(tmp_path: Path, security: str) -> Security:
    return load(tmp_path, security).clusters["prod"].security


def test_a_cluster_without_security_is_plaintext(tmp_path: Path) -> None:
    assert read(tmp_path, "") == Security()
    assert read(tmp_path, "tls = false") == Security()


def test_tls_true_trusts_the_authorities_of_the_system(tmp_path: Path) -> None:
    assert read(tmp_path, "tls = true") == Security(tls=Tls())


def test_every_setting_is_read(tmp_path: Path) -> None:
    security = """
    tls = { ca = "/etc/ca.pem", certificate = "me.pem", key = "keys/me.key", key_password = "env:KEY_PASSWORD", \
check_hostname = false }
    sasl = { mechanism = "SCRAM-SHA-512", username = "loader", password = "file:secrets/kafka" }
    """
    assert read(tmp_path, security) == Security(
        tls=Tls(
            ca="/etc/ca.pem",
            certificate=str(tmp_path / "me.pem"),
            key=str(tmp_path / "keys/me.key"),
            key_password=SecretReference("env", "KEY_PASSWORD"),
            check_hostname=False,
        ),
        sasl=Sasl(
            mechanism="SCRAM-SHA-512",
            username="loader",
            password=SecretReference("file", str(tmp_path / "secrets/kafka")),
        ),
    )


def test_a_token_can_be_in_a_file_of_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    security = read(tmp_path, 'tls = true\nsasl = { mechanism = "OAUTHBEARER", token = "file:~/token" }')
    assert security.sasl == Sasl(mechanism="OAUTHBEARER", token=SecretReference("file", str(tmp_path / "home/token")))


def test_a_token_server_is_a_section_in_which_paths_are_relative_too(tmp_path: Path) -> None:
    toml = """
    tls = true
    [clusters.prod.security.sasl]
    mechanism = "OAUTHBEARER"
    extensions = { logicalCluster = "lkc-1" }
    [clusters.prod.security.sasl.client_credentials]
    url = "https://login.example.org/token"
    client_id = "penstock"
    client_secret = "file:secret"
    tls = { ca = "ca.pem" }
    """
    server = ClientCredentials(
        url="https://login.example.org/token",
        client_id="penstock",
        client_secret=SecretReference("file", str(tmp_path / "secret")),
        tls=Tls(ca=str(tmp_path / "ca.pem")),
    )
    sasl = Sasl(mechanism="OAUTHBEARER", client_credentials=server, extensions={"logicalCluster": "lkc-1"})
    assert read(tmp_path, toml) == Security(tls=Tls(), sasl=sasl)
    system = replace(sasl, client_credentials=replace(server, tls=Tls()))
    assert read(tmp_path, toml.replace('{ ca = "ca.pem" }', "true")) == Security(tls=Tls(), sasl=system)


def test_a_keytab_is_a_path_and_no_secret(tmp_path: Path) -> None:
    security = read(tmp_path, 'sasl = { mechanism = "GSSAPI", principal = "loader@EXAMPLE.ORG", keytab = "my.keytab" }')
    keytab = str(tmp_path / "my.keytab")
    assert security == Security(sasl=Sasl(mechanism="GSSAPI", principal="loader@EXAMPLE.ORG", keytab=keytab))
    assert read(tmp_path, 'sasl = { mechanism = "GSSAPI" }').protocol == "SASL_PLAINTEXT"


def test_a_link_to_a_secret_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(tmp_path / "old")
    security = read(tmp_path, 'sasl = { mechanism = "SCRAM-SHA-256", username = "x", password = "file:current" }')
    assert security.sasl is not None
    assert security.sasl.password == SecretReference("file", str(tmp_path / "current"))


def test_plain_over_plaintext_is_accepted_when_it_is_allowed_explicitly(tmp_path: Path) -> None:  # fault X08
    toml = 'mechanism = "PLAIN", username = "x", password = "env:P"'
    assert read(tmp_path, f"sasl = {{ {toml}, allow_secret_over_plaintext = true }}").protocol == "SASL_PLAINTEXT"
    with pytest.raises(SettingsError, match=r"clusters\.prod\.security: sasl: PLAIN without tls"):
        load(tmp_path, f"sasl = {{ {toml} }}")


@pytest.mark.parametrize(
    ("security", "message"),
    [
        (
            'sasl = { mechanism = "PLAIN", username = "x", password = "canary" }',
            "sasl.password: write a reference",
        ),
        (
            'sasl = { mechanism = "PLAIN", username = "x", password = "env:canary!" }',
            "sasl.password: write a reference",
        ),
        ('sasl = { mechanism = "PLAIN", username = "x", password = "file:" }', "sasl.password: write a reference"),
        ('sasl = { mechanism = "PLAIN", username = "x", password = ["canary"] }', "sasl.password: write a reference"),
        (
            'sasl = { mechanism = "PLAIN", username = "x", password = { kind = "env", name = "canary" } }',
            "sasl.password: ",
        ),
        (
            'sasl = { mechanism = "OAUTHBEARER", token = "canary" }',
            "sasl.token: write a reference instead of the secret",
        ),
        ('sasl = { mechanism = "PLAIN", username = "x", passwort = "canary" }', "sasl.passwort is not a setting"),
        ('sasl = { mechanism = "canary", username = "x", password = "env:P" }', "sasl.mechanism must be "),
        (
            f"sasl = {TOKEN_SERVER}".replace("https://x", "https://canary@x"),
            "security.sasl.client_credentials: url: write `http",
        ),
        (
            f"sasl = {TOKEN_SERVER}".replace("env:S", "canary"),
            "client_credentials.client_secret: write a reference",
        ),
        ('sasl = "canary"', "sasl must be a section"),
        ('tls = "canary"', "tls must be a section"),
        ("tls = { verify = false }", "tls.verify is not a setting"),
        ("tls = { check_hostname = false }", "clusters.prod.security.tls: `check_hostname` can be off only with"),
        ('tls = { ca = "" }', "tls.ca must not be empty"),
        ('tls = { certificate = "me.pem", key_password = "canary" }', "tls.key_password: write a reference instead"),
        ('sasl = { mechanism = "PLAIN", username = "x" }', "security.sasl: PLAIN takes `username` and `password`"),
        ('tls = { key = "canary" }', "`key` and `key_password` belong to a `certificate`"),
    ],
)
def test_an_error_names_the_key_and_never_repeats_the_value(
    tmp_path: Path, security: str, message: str
) -> None:  # faults X01, X07
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, security)
    assert message in str(raised.value)
    assert "canary" not in "".join(traceback.format_exception(raised.value))


def test_the_settings_show_references_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fault X01
    monkeypatch.setenv("KAFKA_PASSWORD", "canary")
    toml = 'tls = true\nsasl = { mechanism = "PLAIN", username = "loader", password = "env:KAFKA_PASSWORD" }'
    settings = load(tmp_path, toml)
    for text in (repr(settings), settings.model_dump_json(), repr(settings.clusters["prod"].security)):
        assert "KAFKA_PASSWORD" in text
        assert "canary" not in text
