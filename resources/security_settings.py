"""`[clusters.<name>.security]`: the settings' words for what kafka_io.net.security checks and explains."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from kafka_io.net.security import MechanismName, Sasl, Security, Tls
from resources.secrets import FilePath, SecretReference
from resources.section import Section


class TlsSettings(Section):
    """TLS 1.2 or newer with brokers whose certificates are verified; no setting turns that off."""

    ca: FilePath | None = None
    """A file of the authorities to trust, PEM; the system's by default."""

    certificate: FilePath | None = None
    """A file of our own certificate and what links it to its authority, PEM, for brokers that ask for one."""

    key: FilePath | None = None
    """A file of its private key, PEM; in the certificate's file by default."""

    key_password: SecretReference | None = None
    """Of an encrypted key."""

    check_hostname: bool = True
    """Off for brokers whose certificates name no host; only with a `ca` of your own, as any of its certificates will
    do then."""


class SaslSettings(Section):
    """How we authenticate: by name and password, or by a token."""

    mechanism: MechanismName
    """PLAIN and OAUTHBEARER show the secret itself to who can read the wire; SCRAM shows a proof of it."""

    username: str | None = None
    """Of all but OAUTHBEARER."""

    password: SecretReference | None = None
    """Of all but OAUTHBEARER."""

    token: SecretReference | None = None
    """Of OAUTHBEARER; read anew for each connection, so that it may be renewed beside us."""

    allow_secret_over_plaintext: bool = False
    """Allow PLAIN or OAUTHBEARER without TLS, where the wire itself is trusted."""


def _on_or_off(value: Any) -> Any:
    return ({} if value else None) if isinstance(value, bool) else value


class SecuritySettings(Section):
    """How brokers are to be trusted and we authenticate. `tls = true` trusts the system's authorities."""

    tls: Annotated[TlsSettings | None, BeforeValidator(_on_or_off)] = None
    """A section, or `true`."""

    sasl: SaslSettings | None = None
    """A section; none by default."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        security_of(self)
        return self


def security_of(settings: SecuritySettings) -> Security:
    """The settings as kafka_io takes them."""
    return Security(
        tls=None if settings.tls is None else Tls(**dict(settings.tls)),
        sasl=None if settings.sasl is None else Sasl(**dict(settings.sasl)),
    )
