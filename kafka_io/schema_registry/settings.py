"""The address of a schema registry and the login there, as the settings file and the library describe them.

The values hold references to secrets, never a secret, so they may be shown, logged and sent to workers. The docstrings
are also the text of docs/settings.md.
"""

import re
from dataclasses import dataclass

from kafka_io.net.http_login import HttpLogin
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Tls

_URL = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~%!$&'()*+,;=:@-]+)*)/?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAddress:
    """The parts of a registry's URL. `path` precedes the path of each request; it is empty or begins with a slash."""

    host: str
    port: int
    path: str
    uses_tls: bool

    @classmethod
    def parse(cls, url: str) -> "RegistryAddress":
        """The parts of `url`.

        Raises:
            ValueError: the text is not such a URL. The message does not repeat it: it may contain a password.
        """
        match = _URL.fullmatch(url)
        port = 0 if match is None else int(match["port"] or _DEFAULT_PORTS[match["scheme"]])
        if match is None or not 0 < port <= _MAX_PORT:
            raise ValueError(
                "url: write `http://host:port` or `https://host:port`, with the path of the API if it has one, "
                "and without a user name, password or query"
            )
        return cls(
            host=match["ipv6"] or match["host"], port=port, path=match["path"], uses_tls=match["scheme"] == "https"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistrySettings:
    """A schema registry with Confluent's REST API, for example Confluent's own, Apicurio or Karapace.

    Raises:
        ValueError: the URL is not valid, fields contradict each other, or a secret would cross the network
            unencrypted and the settings do not allow that explicitly.

    >>> SchemaRegistrySettings(url="https://registry.example.org").address.port
    443
    """

    url: str
    """Base URL such as `https://registry.example.org:8081`, with the path of the API if it has one (Apicurio:
    `/apis/ccompat/v7`), and without a user name or password."""

    username: str | None = None
    """User name for basic authentication."""

    password: SecretReference | None = None
    """Password for basic authentication."""

    token: SecretReference | None = None
    """Bearer token, instead of user name and password. It is read again for each request, so another program can renew
    it."""

    tls: Tls | None = None
    """A section for `https`: the authorities to trust, and a client certificate if the registry requires one. By
    default the authorities of the operating system are trusted."""

    allow_secret_over_plaintext: bool = False
    """Allow a password or token with `http`, in a network that you trust."""

    def __post_init__(self) -> None:
        address = self.address
        if self.tls is not None and not address.uses_tls:
            raise ValueError("tls: the `url` begins with http://; write https:// to use TLS")
        if (self.username is None) != (self.password is None):
            raise ValueError("`username` and `password` belong together")
        if self.username is not None and (":" in self.username or not self.username.isprintable()):
            raise ValueError("username: a user name for basic authentication has no colon and no control characters")
        if self.password is not None and self.token is not None:
            raise ValueError("set `token`, or `username` and `password`, not both")
        has_secret = self.password is not None or self.token is not None
        if has_secret and not address.uses_tls and not self.allow_secret_over_plaintext:
            raise ValueError(
                "a password or token with http:// lets everyone on the way read it; use https://, "
                "or set `allow_secret_over_plaintext = true` if that is meant"
            )

    @property
    def address(self) -> RegistryAddress:
        """The parts of the URL."""
        return RegistryAddress.parse(self.url)

    def login(self) -> HttpLogin | None:
        """The login for one request. It reads the secret now; drop it after the request.

        Raises:
            SecretMissing: the secret does not exist.
            AuthenticationFailed: the token cannot be sent.
        """
        if self.token is not None:
            return HttpLogin.bearer(self.token.read())
        if self.username is not None and self.password is not None:
            return HttpLogin.basic(self.username, self.password.read())
        return None
