"""TLS and SASL of a cluster's connections, as the settings file and the library describe them.

These values hold references to secrets, never a secret, so they may be shown, logged and sent to workers. Their files
and variables must exist on every machine that connects. The docstrings are also the text of docs/settings.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from kafka_io.net.http_address import HttpAddress
from kafka_io.net.secret import SecretReference

MechanismName = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]
KERBEROS: Final = "GSSAPI"

# These mechanisms send the secret itself; SCRAM sends only a proof of it (fault X08).
_SEND_THE_SECRET = frozenset({"PLAIN", "OAUTHBEARER"})

# RFC 7628, section 3.1: what a key and a value of an extension consist of.
_EXTENSION_KEY = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]*")
# RFC 6749, appendix A.
_PRINTABLE = re.compile(r"[\x20-\x7e]+")

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
class ClientCredentials:
    """A token server (OAuth 2.0 or OpenID Connect) that gives the client a token for its own id and secret.

    Raises:
        ValueError: the URL is not valid, or the secret would cross the network unencrypted, and the settings do not
            allow that explicitly.
    """

    url: str
    """URL of the token endpoint, such as `https://login.example.org/oauth2/token`. Redirects are not followed."""

    client_id: str
    """The id of the client at the token server."""

    client_secret: SecretReference
    """The secret of the client. It is sent to the token server only."""

    scope: str | None = None
    """The scope of the token, if the token server requires one. Several are separated by spaces."""

    tls: Tls | None = None
    """A section for `https`: the authorities to trust, and a client certificate if the token server requires one. By
    default the authorities of the operating system are trusted."""

    allow_secret_over_plaintext: bool = False
    """Allow a token server with `http`, in a network that you trust."""

    def __post_init__(self) -> None:
        try:
            self.address.check_tls(self.tls)
            self.address.check_secret(allow_over_plaintext=self.allow_secret_over_plaintext)
        except ValueError as error:
            raise ValueError(f"client_credentials: {error}") from None
        for name, text in (("client_id", self.client_id), ("scope", self.scope)):
            if text is not None and not _PRINTABLE.fullmatch(text):
                raise ValueError(f"client_credentials: `{name}` must consist of printable ASCII characters")

    @property
    def address(self) -> HttpAddress:
        """The parts of the URL."""
        return HttpAddress.parse(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """How the client authenticates: with user name and password, with a token, or with Kerberos.

    Raises:
        ValueError: a field is missing that the mechanism needs, or a field is set that it does not use.
    """

    mechanism: MechanismName
    """The SASL mechanism. PLAIN and OAUTHBEARER send the secret itself over the connection; SCRAM sends only a proof
    of it. GSSAPI is Kerberos: it needs `pip install penstock-etl[kerberos]` on each host."""

    username: str | None = None
    """User name, for PLAIN and SCRAM."""

    password: SecretReference | None = None
    """Password, for PLAIN and SCRAM."""

    token: SecretReference | None = None
    """Token for OAUTHBEARER. It is read again for each connection, so another program can renew it."""

    client_credentials: ClientCredentials | None = None
    """A section, instead of `token`: Penstock requests the tokens from a token server, and renews them."""

    aws_region: str | None = field(default=None, metadata={"min_length": 1})
    """AWS region, such as "eu-central-1", instead of `token`: Penstock logs in to Amazon MSK with the IAM identity of
    the process (environment, profile, instance role). Needs `pip install penstock-etl[msk]` on each host."""

    extensions: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Further fields that OAUTHBEARER sends to the broker, for example `logicalCluster` for a cloud (KIP-342). They are
    not secret."""

    principal: str | None = field(default=None, metadata={"min_length": 1})
    """Principal of the client for GSSAPI, such as "penstock@EXAMPLE.ORG". By default it is that of the ticket."""

    keytab: str | None = field(default=None, metadata=FILE)
    """Keytab with the key of `principal`, for GSSAPI. It must exist on each host. Each process requests tickets with
    it, and renews them. Without a keytab the tickets are in the cache that `kinit` writes."""

    service_name: str | None = field(default=None, metadata={"min_length": 1})
    """First part of the brokers' principals, for GSSAPI: `sasl.kerberos.service.name` of the brokers. "kafka" by
    default."""

    allow_secret_over_plaintext: bool = False
    """Allow PLAIN or OAUTHBEARER without TLS, in a network that you trust."""

    def __post_init__(self) -> None:
        if self.mechanism not in get_args(MechanismName):
            raise ValueError(f"sasl: `mechanism` is one of {', '.join(get_args(MechanismName))}")
        if self.mechanism == KERBEROS:
            self._check_kerberos()
            return
        if self.principal or self.keytab or self.service_name:
            raise ValueError("sasl: `principal`, `keytab` and `service_name` are for GSSAPI only")
        if self.mechanism == "OAUTHBEARER":
            self._check_bearer()
            return
        if self._has_bearer_fields:
            raise ValueError(
                "sasl: `token`, `client_credentials`, `aws_region` and `extensions` are for OAUTHBEARER only"
            )
        if not self.username or self.password is None:
            raise ValueError(f"sasl: {self.mechanism} takes `username` and `password`")

    @property
    def _has_bearer_fields(self) -> bool:
        return any((self.token, self.client_credentials, self.aws_region, self.extensions))

    def _check_kerberos(self) -> None:
        if self.username is not None or self.password is not None or self._has_bearer_fields:
            raise ValueError("sasl: GSSAPI takes only `principal`, `keytab` and `service_name`")
        if self.keytab and not self.principal:
            raise ValueError("sasl: `keytab` needs the `principal` whose key is used")

    def _check_bearer(self) -> None:
        if self.username is not None or self.password is not None:
            raise ValueError("sasl: OAUTHBEARER takes neither `username` nor `password`")
        sources = (self.token, self.client_credentials, self.aws_region)
        if sum(source is not None for source in sources) != 1:
            raise ValueError("sasl: OAUTHBEARER takes one of `token`, `client_credentials` and `aws_region`")
        for key, value in self.extensions.items():
            # `auth` is the field of the token itself.
            if not _EXTENSION_KEY.fullmatch(key) or key == "auth" or not _EXTENSION_VALUE.fullmatch(value):
                raise ValueError("sasl: a key of `extensions` has only letters and is not `auth`, a value only ASCII")


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
