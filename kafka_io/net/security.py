"""TLS and SASL of a cluster's connections, as the settings file and the library describe them.

These values hold references to secrets, never a secret, so they may be shown, logged and sent to workers. Their files
and variables must exist on every machine that connects. The docstrings are also the text of docs/settings.md.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from kafka_io.net.secret import SecretReference

MechanismName = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

# These mechanisms send the secret itself; SCRAM sends only a proof of it (fault X08).
_SEND_THE_SECRET = frozenset({"PLAIN", "OAUTHBEARER"})

# pydantic reads the metadata of a dataclass field when the class is part of a settings model.
FILE: dict[str, Any] = {"min_length": 1, "json_schema_extra": {"format": "path"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS 1.2 or newer. Certificates of servers are always verified; no setting turns that off.

    Raises:
        ValueError: a field is set that has no effect, or no safe one, without another field (fault X07).
    """

    ca: str | None = field(default=None, metadata=FILE)
    """PEM file with the certificate authorities to trust. The authorities of the operating system by default."""

    certificate: str | None = field(default=None, metadata=FILE)
    """PEM file with the client certificate and its chain, for servers that require one."""

    key: str | None = field(default=None, metadata=FILE)
    """PEM file with the private key of the client certificate. By default the key is in the certificate's file."""

    key_password: SecretReference | None = None
    """Password of an encrypted private key."""

    check_hostname: bool = True
    """Compare the host name with the server's certificate. `false` is allowed only with a `ca` of your own, because
    every certificate of that authority is then accepted for every server."""

    def __post_init__(self) -> None:
        if self.certificate is None and (self.key or self.key_password):
            raise ValueError("tls: `key` and `key_password` belong to a `certificate`")
        if self.ca is None and not self.check_hostname:
            raise ValueError("tls: `check_hostname` can be off only with a `ca` of your own")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """How the client authenticates: with user name and password, or with a token.

    Raises:
        ValueError: a field is missing that the mechanism needs, or a field is set that it does not use.
    """

    mechanism: MechanismName
    """The SASL mechanism. PLAIN and OAUTHBEARER send the secret itself over the connection; SCRAM sends only a proof
    of it."""

    username: str | None = None
    """User name; for every mechanism except OAUTHBEARER."""

    password: SecretReference | None = None
    """Password; for every mechanism except OAUTHBEARER."""

    token: SecretReference | None = None
    """Token for OAUTHBEARER. It is read again for each connection, so another program can renew it."""

    allow_secret_over_plaintext: bool = False
    """Allow PLAIN or OAUTHBEARER without TLS, in a network that you trust."""

    def __post_init__(self) -> None:
        if self.mechanism not in get_args(MechanismName):
            raise ValueError(f"sasl: `mechanism` is one of {', '.join(get_args(MechanismName))}")
        by_token = self.mechanism == "OAUTHBEARER"
        if by_token and (self.token is None or self.username is not None or self.password is not None):
            raise ValueError("sasl: OAUTHBEARER takes a `token`, and neither `username` nor `password`")
        if not by_token and (self.token is not None or not self.username or self.password is None):
            raise ValueError(f"sasl: {self.mechanism} takes `username` and `password`, and no `token`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Encryption and authentication. `tls = true` trusts the certificate authorities of the operating system.

    Raises:
        ValueError: a secret would cross the network unencrypted, and the settings do not allow that explicitly.
    """

    tls: Tls | None = None
    """A section, or `true`. Without it, connections are not encrypted."""

    sasl: Sasl | None = None
    """A section. Without it, the client does not authenticate with SASL."""

    def __post_init__(self) -> None:
        sasl = self.sasl
        if sasl and not self.tls and sasl.mechanism in _SEND_THE_SECRET and not sasl.allow_secret_over_plaintext:
            raise ValueError(
                f"sasl: {sasl.mechanism} without tls lets everyone on the way read the secret; set `tls`, "
                "or `allow_secret_over_plaintext = true` if that is meant"
            )

    @property
    def protocol(self) -> str:
        """The security protocol of a broker's listener of this kind, as Metadata and ZooKeeper name it."""
        transport = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{transport}" if self.sasl else transport


PLAINTEXT = Security()
