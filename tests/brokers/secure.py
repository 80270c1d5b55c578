"""A real broker with all of Kafka's security: TLS, client certificates, and four SASL mechanisms."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.certificates import Authority, Certificate
from tests.brokers.real import RealBroker

USER = "alice"
PASSWORD = "canary-of-alice"  # test_canary.py searches for it in all output of loads
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_LISTENERS = {"SSL": "SSL", "MTLS": "SSL", "SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL"}
_MODULES = "org.apache.kafka.common.security"
_LOGINS = {
    "PLAIN": f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "OAUTHBEARER": f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureBroker:
    """A running broker, and the credentials for its listeners.

    The listener SSL requires no client certificate; MTLS requires a certificate of the authority. SASL_PLAINTEXT and
    SASL_SSL accept all `MECHANISMS`.
    """

    broker: RealBroker
    authority: Path
    """The PEM file of the authority that a client must trust."""
    client: Certificate
    user: str = USER
    password: str = PASSWORD

    def bootstrap(self, listener: str) -> str:
        """The address of a listener: `host:port`."""
        return f"{self.broker.host}:{self.broker.ports[listener]}"


@contextmanager
def secure_broker(
    folder: Path, version: str = "3.9.1", config: Mapping[str, str] | None = None
) -> Iterator[SecureBroker]:
    """Run a secure broker for the length of a `with` block."""
    authority = Authority.create_in(folder / "certificates")
    settings = {**_tls(authority), **_sasl(), **(config or {})}
    users = {USER: PASSWORD}
    with RealBroker(version, folder / "broker", config=settings, listeners=_LISTENERS, users=users) as broker:
        yield SecureBroker(broker=broker, authority=authority.own.certificate, client=authority.sign("client"))


def unsecured_token(subject: str = USER, lifetime_s: float = 3600) -> str:
    """An unsigned token for OAUTHBEARER. A broker accepts it unless it is configured to validate tokens (KIP-255)."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + lifetime_s})
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def _tls(authority: Authority) -> Mapping[str, str]:
    server = authority.sign("server")
    key_and_certificate = authority.folder / "server-both.pem"
    key_and_certificate.write_text(server.key.read_text() + server.certificate.read_text())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_and_certificate),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.own.certificate),
        "listener.name.mtls.ssl.client.auth": "required",
    }


def _sasl() -> Mapping[str, str]:
    logins = {
        f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config": login
        for listener in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism, login in _LOGINS.items()
    }
    return {"sasl.enabled.mechanisms": ",".join(MECHANISMS), **logins}
