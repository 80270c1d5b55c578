"""Security settings are consistent, survive JSON, and send no secret without encryption."""

from typing import Any

import msgspec
import pytest

from kafka_io.net.secret import SecretReference
from kafka_io.net.security import ClientCredentials, MechanismName, Sasl, Security, Tls

PASSWORD = SecretReference("env", "KAFKA_PASSWORD")
TLS = Tls(
    ca="/ca.pem",
    certificate="/me.pem",
    key="/me.key",
    key_password=SecretReference("file", "/kp"),
    check_hostname=False,
)
SCRAM = Sasl(mechanism="SCRAM-SHA-512", username="loader", password=PASSWORD)
BEARER = Sasl(mechanism="OAUTHBEARER", token=SecretReference("file", "/run/token"))
TOKEN_URL = "https://login.example.org/oauth2/token"
CLIENT = ClientCredentials(url=TOKEN_URL, client_id="penstock", client_secret=PASSWORD, scope="a b", tls=TLS)
OAUTH = Sasl(mechanism="OAUTHBEARER", client_credentials=CLIENT, extensions={"logicalCluster": "lkc-1"})
PLAIN = Sasl(mechanism="PLAIN", username="loader", password=PASSWORD, allow_secret_over_plaintext=True)
VALID = [
    (Security(), "PLAINTEXT"),
    (Security(tls=Tls()), "SSL"),
    (Security(tls=TLS, sasl=SCRAM), "SASL_SSL"),
    (Security(tls=Tls(), sasl=BEARER), "SASL_SSL"),
    (Security(tls=Tls(), sasl=OAUTH), "SASL_SSL"),
    (Security(tls=Tls(), sasl=Sasl(mechanism="OAUTHBEARER", aws_region="eu-central-1")), "SASL_SSL"),
    (Security(sasl=SCRAM), "SASL_PLAINTEXT"),
    (Security(sasl=Sasl(mechanism="GSSAPI", principal="loader", keytab="/keytab")), "SASL_PLAINTEXT"),
    (Security(sasl=PLAIN), "SASL_PLAINTEXT"),
]


@pytest.mark.parametrize(("security", "protocol"), VALID)
def test_security_survives_json(security: Security, protocol: str) -> None:
    assert msgspec.json.decode(msgspec.json.encode(security), type=Security) == security
    assert security.protocol == protocol


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_a_secret_over_plaintext_must_be_allowed_explicitly(mechanism: MechanismName) -> None:  # fault X08
    fields: dict[str, Any] = (
        {"token": PASSWORD} if mechanism == "OAUTHBEARER" else {"username": "loader", "password": PASSWORD}
    )
    with pytest.raises(ValueError, match=rf"{mechanism} without tls .*`allow_secret_over_plaintext = true`"):
        Security(sasl=Sasl(mechanism=mechanism, **fields))
    allowed = Sasl(mechanism=mechanism, allow_secret_over_plaintext=True, **fields)
    assert Security(sasl=allowed).protocol == "SASL_PLAINTEXT"
    assert Security(tls=Tls(), sasl=Sasl(mechanism=mechanism, **fields)).protocol == "SASL_SSL"


def test_decoding_checks_the_values_again() -> None:  # fault X08
    data = msgspec.to_builtins(Security(sasl=PLAIN))
    data["sasl"]["allow_secret_over_plaintext"] = False
    with pytest.raises(ValueError, match="PLAIN without tls"):
        msgspec.convert(data, Security)


@pytest.mark.parametrize(
    "fields",
    [
        {"mechanism": "OAUTHBEARER"},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "username": "loader"},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "password": PASSWORD},
        {"mechanism": "PLAIN", "username": "loader"},
        {"mechanism": "PLAIN", "password": PASSWORD},
        {"mechanism": "SCRAM-SHA-256", "username": "", "password": PASSWORD},
        {"mechanism": "SCRAM-SHA-256", "username": "loader", "password": PASSWORD, "token": PASSWORD},
        {"mechanism": "SCRAM-SHA-1", "username": "loader", "password": PASSWORD},
        {"mechanism": "GSSAPI", "username": "loader", "password": PASSWORD},
        {"mechanism": "GSSAPI", "token": PASSWORD},
        {"mechanism": "GSSAPI", "extensions": {"a": "b"}},
        {"mechanism": "GSSAPI", "keytab": "/keytab"},
        {"mechanism": "PLAIN", "username": "loader", "password": PASSWORD, "keytab": "/keytab", "principal": "loader"},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "service_name": "kafka"},
        {"mechanism": "PLAIN", "username": "loader", "password": PASSWORD, "client_credentials": CLIENT},
        {"mechanism": "PLAIN", "username": "loader", "password": PASSWORD, "extensions": {"a": "b"}},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "client_credentials": CLIENT},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "aws_region": "eu-central-1"},
        {"mechanism": "PLAIN", "username": "loader", "password": PASSWORD, "aws_region": "eu-central-1"},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "extensions": {"auth": "Bearer x"}},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "extensions": {"a b": "x"}},
        {"mechanism": "OAUTHBEARER", "token": PASSWORD, "extensions": {"a": "x\x01host=y"}},
    ],
)
def test_a_mechanism_needs_exactly_its_own_fields(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^sasl: "):
        Sasl(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"key": "/k"}, "belong to a `certificate`"),
        ({"key_password": PASSWORD}, "belong to a `certificate`"),
        ({"check_hostname": False}, "only with a `ca` of your own"),
    ],
)
def test_tls_fields_that_need_others_are_refused_without_them(
    fields: dict[str, Any], message: str
) -> None:  # fault X07
    with pytest.raises(ValueError, match=message):
        Tls(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "http://login.example.org/token"}, "lets everyone on the way read the secret"),
        ({"url": "http://login/token", "allow_secret_over_plaintext": True, "tls": Tls()}, "begins with http://"),
        ({"url": "https://canary@login.example.org/token"}, "client_credentials: url: write `http"),
        ({"client_id": "two\nlines"}, "`client_id` must consist of printable"),
        ({"scope": ""}, "`scope` must consist of printable"),
    ],
)
def test_a_token_server_that_is_not_safe_is_refused(fields: dict[str, Any], message: str) -> None:  # faults X08, X10
    values = {"url": TOKEN_URL, "client_id": "penstock", "client_secret": PASSWORD, **fields}
    with pytest.raises(ValueError, match=message) as raised:
        ClientCredentials(**values)
    assert "canary" not in str(raised.value)
    assert ClientCredentials(url="http://x/", client_id="y", client_secret=PASSWORD, allow_secret_over_plaintext=True)
