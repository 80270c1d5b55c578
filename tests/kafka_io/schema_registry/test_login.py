"""Logins and TLS of a registry. No text that anyone could log contains the secret (fault X01)."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kafka_io.errors import AuthenticationFailed, KafkaIOError, SecretMissing, TlsFailed
from kafka_io.net.http_address import HttpAddress
from kafka_io.net.http_login import HttpLogin
from kafka_io.net.secret import Secret, SecretReference
from kafka_io.net.security import Tls
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from kafka_io.testing.schema_registry.faults import Fault
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fakes.registry_faults import answers, ends_after, sends, sends_raw, stalls
from tests.fakes.tls import CA, GOLDEN, serving
from tests.kafka_io.net.test_canary import CANARY, assert_silent
from tests.kafka_io.schema_registry.conftest import MakeClient

WHERE = SecretReference("env", "PENSTOCK_TEST_SECRET")
ENCODED = "bG9hZGVyOmNhbmFyeS10d2VldC10d2VldA=="  # loader:canary-tweet-tweet
LOGINS: dict[str, dict[str, Any]] = {
    "Basic": {"username": "loader", "password": WHERE},
    "Bearer": {"token": WHERE},
}
HEADERS = {"Basic": f"Basic {ENCODED}", "Bearer": f"Bearer {CANARY}"}
HTTPS = "https://registry:8081"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHERE.name, CANARY)


@pytest.mark.parametrize("scheme", LOGINS)
def test_a_login_is_sent_with_each_request(scheme: str, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedSchemaRegistry(authorization=HEADERS[scheme]) as embedded:
        allowed = {"allow_secret_over_plaintext": True}
        registry = client_of(embedded.url, **LOGINS[scheme], **allowed).registry
        assert registry.subjects() == []
        with pytest.raises(AuthenticationFailed, match=r"refuses the login, or requires one .*401: Unauthorized"):
            client_of(embedded.url).registry.subjects()
        monkeypatch.setenv(WHERE.name, "another")  # another program renews the secret
        with pytest.raises(AuthenticationFailed):
            registry.subjects()


ECHO = f"{CANARY} {ENCODED}"


@pytest.mark.parametrize("scheme", LOGINS)
@pytest.mark.parametrize(
    "fault",
    [
        answers(401, message=ECHO),
        answers(403, message=ECHO),
        answers(500, message=ECHO),
        answers(404, 40403, ECHO),
        answers(404, message=ECHO),
        sends(ECHO.encode()),
        sends_raw(ECHO.encode()),
        ends_after(0),
        ends_after(-1),
        stalls,
    ],
)
def test_no_failure_shows_the_secret(scheme: str, fault: Fault, client_of: MakeClient) -> None:
    with EmbeddedSchemaRegistry() as embedded:
        embedded.register("orders-value", '"string"')
        embedded.inject(fault, times=None)
        login = {**LOGINS[scheme], "allow_secret_over_plaintext": True}
        with pytest.raises(KafkaIOError) as raised:
            client_of(embedded.url, attempts=1, timeout_s=0.5, **login).registry.schema(1)
    assert_silent(raised.value)
    assert HEADERS[scheme].split()[1] not in str(raised.value)


@pytest.mark.parametrize("bad", ["two\r\nlines", "two words", "\u20ac"])
def test_a_token_that_would_end_the_header_is_not_sent(
    bad: str, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WHERE.name, f"{CANARY}{bad}")
    with EmbeddedSchemaRegistry() as embedded:
        with pytest.raises(AuthenticationFailed, match="characters that bearer tokens cannot have") as raised:
            client_of(embedded.url, token=WHERE, allow_secret_over_plaintext=True).registry.subjects()
        assert embedded.requests == []
    assert_silent(raised.value)


def test_a_missing_secret_is_named(client_of: MakeClient) -> None:
    missing = SecretReference("env", "PENSTOCK_NO_SUCH_SECRET")
    with pytest.raises(SecretMissing, match="env:PENSTOCK_NO_SUCH_SECRET"):
        client_of(HTTPS, token=missing).registry.subjects()


@pytest.mark.parametrize("scheme", LOGINS)
def test_settings_travel_and_contain_no_secret(scheme: str) -> None:  # fault X02
    settings = SchemaRegistrySettings(url=HTTPS, tls=Tls(ca=CA), **LOGINS[scheme])
    assert settings.login() is not None
    for text in (repr(settings), repr(settings.login()), msgspec.json.encode(settings).decode()):
        assert CANARY not in text
        assert ENCODED not in text
    pickled = pickle.dumps(settings)
    assert CANARY.encode() not in pickled
    assert pickle.loads(pickled) == settings
    assert msgspec.json.decode(msgspec.json.encode(settings), type=SchemaRegistrySettings) == settings


def test_a_login_cannot_be_pickled() -> None:  # fault X02
    with pytest.raises(TypeError):
        pickle.dumps(HttpLogin.basic("loader", Secret(CANARY.encode())))


def test_a_client_certificate_is_shown_to_the_registry(client_of: MakeClient) -> None:
    tls = Tls(ca=CA, certificate=str(GOLDEN / "loader.pem"))
    with EmbeddedSchemaRegistry(tls=serving(loaders_only=True)) as embedded:
        assert client_of(embedded.url, tls=tls, token=WHERE).registry.subjects() == []
        with pytest.raises(TlsFailed, match="requires a client certificate"):
            client_of(embedded.url, tls=replace(tls, certificate=None)).registry.subjects()


@pytest.mark.parametrize("certificate", ["expired", "loader"])
def test_no_login_is_sent_to_a_registry_without_a_valid_certificate(
    certificate: str, client_of: MakeClient
) -> None:  # faults X07, X14, X20
    with EmbeddedSchemaRegistry(tls=serving(certificate)) as embedded:
        with pytest.raises(TlsFailed, match="the server's certificate is not valid"):
            client_of(embedded.url, tls=Tls(ca=CA), token=WHERE).registry.subjects()
        with pytest.raises(TlsFailed, match="the server's certificate is not valid"):
            client_of(embedded.url, token=WHERE).registry.subjects()  # the authorities of the operating system
        assert embedded.requests == []


def test_plain_text_to_a_tls_port_is_named(client_of: MakeClient) -> None:  # fault W16
    with EmbeddedSchemaRegistry() as embedded:
        embedded.inject(sends_raw(bytes.fromhex("15030300020246")))  # a TLS alert
        with pytest.raises(TlsFailed, match="this port speaks TLS"):
            client_of(embedded.url).registry.subjects()


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://registry", HttpAddress(host="registry", port=80, path="", uses_tls=False)),
        ("https://registry/", HttpAddress(host="registry", port=443, path="", uses_tls=True)),
        ("http://[::1]:8081/a/b/", HttpAddress(host="::1", port=8081, path="/a/b", uses_tls=False)),
        ("https://r_1.x:1/contexts/.c", HttpAddress(host="r_1.x", port=1, path="/contexts/.c", uses_tls=True)),
    ],
)
def test_a_url_is_read(url: str, address: HttpAddress) -> None:
    assert SchemaRegistrySettings(url=url).address == address


@pytest.mark.parametrize(
    "url",
    [
        "registry:8081",
        "ftp://registry",
        "http://",
        "http://registry:0",
        "http://registry:65536",
        "http://registry:port",
        "http://me:canary@registry",
        "http://registry/?token=canary",
        "http://registry/#canary",
        "http://registry/canary\r\nX: y",
        "http://registry /canary",
        "http://a,http://canary",
        "http://[canary]/",
    ],
)
def test_a_url_of_another_form_is_refused_and_not_repeated(url: str) -> None:  # fault X01
    with pytest.raises(ValueError, match="url: write") as raised:
        SchemaRegistrySettings(url=url)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "http://r", "tls": Tls()}, "the `url` begins with http://"),
        ({"url": HTTPS, "username": "loader"}, "belong together"),
        ({"url": HTTPS, "password": WHERE}, "belong together"),
        ({"url": HTTPS, "username": "a:b", "password": WHERE}, "no colon"),
        ({"url": HTTPS, "username": "a\nb", "password": WHERE}, "no control characters"),
        ({"url": HTTPS, "username": "loader", "password": WHERE, "token": WHERE}, "not both"),
        ({"url": "http://r", "token": WHERE}, "allow_secret_over_plaintext"),
        ({"url": "http://r", "username": "loader", "password": WHERE}, "allow_secret_over_plaintext"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    fields: dict[str, Any], message: str
) -> None:  # faults X08, X20
    with pytest.raises(ValueError, match=message):
        SchemaRegistrySettings(**fields)


def test_a_file_of_a_secret_is_read_at_each_request(tmp_path: Path, client_of: MakeClient) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    settings = {"token": SecretReference("file", str(file)), "allow_secret_over_plaintext": True}
    with EmbeddedSchemaRegistry(authorization="Bearer second") as embedded:
        registry = client_of(embedded.url, **settings).registry
        with pytest.raises(AuthenticationFailed):
            registry.subjects()
        file.write_text("second\n")
        assert registry.subjects() == []
