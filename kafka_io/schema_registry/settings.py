"""The address of a schema registry and the login there, as the settings file and the library describe them.

The values hold references to secrets, never a secret, so they may be shown, logged and sent to workers. The docstrings
are also the text of docs/settings.md.
"""

from dataclasses import dataclass

from kafka_io.net.http_address import HttpAddress
from kafka_io.net.http_login import HttpLogin
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Tls


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
        address.check_tls(self.tls)
        if (self.username is None) != (self.password is None):
            raise ValueError("`username` and `password` belong together")
        if self.username is not None and (":" in self.username or not self.username.isprintable()):
            raise ValueError("username: a user name for basic authentication has no colon and no control characters")
        if self.password is not None and self.token is not None:
            raise ValueError("set `token`, or `username` and `password`, not both")
        if self.password is not None or self.token is not None:
            address.check_secret(allow_over_plaintext=self.allow_secret_over_plaintext)

    @property
    def address(self) -> HttpAddress:
        """The parts of the URL."""
        return HttpAddress.parse(self.url)

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
