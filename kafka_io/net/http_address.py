"""The URLs of servers with HTTP: the schema registry, the server of tokens, and the server that takes lineage."""

import re
from dataclasses import dataclass

_URL = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~%!$&'()*+,;=:@-]+)*)/?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """The parts of a URL with http or https.

    `path` precedes the path of each request; it is empty or begins with a slash.
    """

    host: str
    port: int
    path: str
    uses_tls: bool

    @classmethod
    def parse(cls, url: str) -> "HttpAddress":
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

    def check_tls(self, tls: object | None) -> None:
        """Check that a section with settings for TLS has an effect.

        Raises:
            ValueError: it has none, because the URL has http.
        """
        if tls is not None and not self.uses_tls:
            raise ValueError("the `url` begins with http://; write https:// to use `tls`")

    def check_secret(self, *, allow_over_plaintext: bool) -> None:
        """Check that a secret does not cross the network unencrypted, unless the settings allow it (fault X08).

        Raises:
            ValueError: it would.
        """
        if not self.uses_tls and not allow_over_plaintext:
            raise ValueError(
                "http:// lets everyone on the way read the secret; use https://, "
                "or set `allow_secret_over_plaintext = true` if that is meant"
            )
