"""`[clusters.<name>.security]`: the settings' words for what kafka_io.net.security checks and explains."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from kafka_io.net.security import MechanismName, Sasl, Security, Tls
from resources.secrets import FilePath, SecretReference
from resources.section import Section


class TlsSettings(Section):
    """`tls`; see kafka_io.net.security.Tls."""

    ca: FilePath | None = None
    certificate: FilePath | None = None
    key: FilePath | None = None
    key_password: SecretReference | None = None
    check_hostname: bool = True


class SaslSettings(Section):
    """`sasl`; see kafka_io.net.security.Sasl."""

    mechanism: MechanismName
    username: str | None = None
    password: SecretReference | None = None
    token: SecretReference | None = None
    allow_secret_over_plaintext: bool = False


def _on_or_off(value: Any) -> Any:
    return ({} if value else None) if isinstance(value, bool) else value


class SecuritySettings(Section):
    """How brokers are to be trusted and we authenticate. `tls = true` trusts the system's authorities."""

    tls: Annotated[TlsSettings | None, BeforeValidator(_on_or_off)] = None
    sasl: SaslSettings | None = None

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
