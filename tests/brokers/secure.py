"""A real broker with all of Kafka's security: TLS, client certificates, four SASL mechanisms, and access control."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.certificates import Authority, Certificate
from tests.brokers.real import RealBroker
from tests.brokers.token_server import TokenServer

USER = "alice"
PASSWORD = "canary-of-alice"  # test_canary.py searches for it in all output of loads
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
RESTRICTED_USER = "bob"
"""A user without any rights: all others of this broker may do everything."""

SESSION_S = 2.0
"""After so many seconds a client of the listener OAUTH must log in again (KIP-368)."""

_LISTENERS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "OAUTH": "SASL_PLAINTEXT",
}
_MODULES = "org.apache.kafka.common.security"
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Clients of listeners without a login are ANONYMOUS: the broker itself, and the tests.
    "super.users": f"User:ANONYMOUS;User:{USER};User:CN=client",
}
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
    SASL_SSL accept all `MECHANISMS`. OAUTH accepts tokens of `token_server`, whose signature and expiry it checks. The
    user `bob` has the same password, and no rights.
    """

    broker: RealBroker
    authority: Path
    """The PEM file of the authority that a client must trust."""
    client: Certificate
    token_server: TokenServer
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
    users = {USER: PASSWORD, RESTRICTED_USER: PASSWORD}
    with ExitStack() as running:
        tokens = running.enter_context(TokenServer(subject=USER))
        settings = {**_tls(authority), **_sasl(), **_oauth(tokens), **_AUTHORIZER, **(config or {})}
        broker = RealBroker(version, folder / "broker", config=settings, listeners=_LISTENERS, users=users)
        yield SecureBroker(
            broker=running.enter_context(broker),
            authority=authority.own.certificate,
            client=authority.sign("client"),
            token_server=tokens,
        )


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


def _oauth(tokens: TokenServer) -> Mapping[str, str]:
    """A listener that checks signed tokens against the keys of the token server."""
    listener = "listener.name.oauth"
    handler = f"{_MODULES}.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
    return {
        f"{listener}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": handler,
        f"{listener}.oauthbearer.connections.max.reauth.ms": f"{SESSION_S * 1000:.0f}",
        "sasl.oauthbearer.jwks.endpoint.url": f"{tokens.url}/keys",
        "sasl.oauthbearer.expected.audience": tokens.AUDIENCE,
    }
