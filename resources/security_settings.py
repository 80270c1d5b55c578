"""`[clusters.<name>.security]`: TLS and SASL in the settings file. kafka_io.net.security checks the values."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from kafka_io.net.security import MechanismName, Sasl, Security, Tls
from resources.secrets import FilePath, SecretReferenceField
from resources.section import Section


class TlsSettings(Section):
    """TLS 1.2 or newer. Broker certificates are always verified; no setting turns that off."""

    ca: FilePath | None = None
    """PEM file with the certificate authorities to trust. The authorities of the operating system by default."""

    certificate: FilePath | None = None
    """PEM file with the client certificate and its chain, for brokers that require one."""

    key: FilePath | None = None
    """PEM file with the private key of the client certificate. By default the key is in the certificate's file."""

    key_password: SecretReferenceField | None = None
    """Password of an encrypted private key."""

    check_hostname: bool = True
    """Compare the host name with the broker's certificate. `false` is allowed only with a `ca` of your own, because
    every certificate of that authority is then accepted for every broker."""


class SaslSettings(Section):
    """How the client authenticates: with user name and password, or with a token."""

    mechanism: MechanismName
    """The SASL mechanism. PLAIN and OAUTHBEARER send the secret itself over the connection; SCRAM sends only a proof
    of it."""

    username: str | None = None
    """User name; for every mechanism except OAUTHBEARER."""

    password: SecretReferenceField | None = None
    """Password; for every mechanism except OAUTHBEARER."""

    token: SecretReferenceField | None = None
    """Token for OAUTHBEARER. It is read again for each connection, so another program can renew it."""

    allow_secret_over_plaintext: bool = False
    """Allow PLAIN or OAUTHBEARER without TLS, in a network that you trust."""


def _on_or_off(value: Any) -> Any:
    return ({} if value else None) if isinstance(value, bool) else value


class SecuritySettings(Section):
    """Encryption and authentication. `tls = true` trusts the certificate authorities of the operating system."""

    tls: Annotated[TlsSettings | None, BeforeValidator(_on_or_off)] = None
    """A section, or `true`. Without it, connections are not encrypted."""

    sasl: SaslSettings | None = None
    """A section. Without it, the client does not authenticate with SASL."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        security_of(self)
        return self


def security_of(settings: SecuritySettings) -> Security:
    """The settings as the value that kafka_io uses.

    Raises:
        ValueError: the settings contradict each other.
    """
    return Security(
        tls=None if settings.tls is None else Tls(**dict(settings.tls)),
        sasl=None if settings.sasl is None else Sasl(**dict(settings.sasl)),
    )
