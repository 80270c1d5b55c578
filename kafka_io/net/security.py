"""How a cluster is to be trusted, and how it comes to trust us.

These values hold no secret, only references, so they may be shown, logged and sent to workers. The files and variables
they name must be there on every machine that connects.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from kafka_io.net.secret import SecretReference

MechanismName = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

# These show the secret itself to whoever can read the wire; SCRAM only shows a proof of it (fault X08).
_SHOW_THE_SECRET = frozenset({"PLAIN", "OAUTHBEARER"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS 1.2 or newer with a broker whose certificate is verified; no setting turns that off (fault X07).

    Args:
        ca: a file of the authorities to trust, PEM; the system's if None.
        certificate: a file of our own certificate and what links it to its authority, PEM; none is shown if None.
        key: a file of its private key, PEM; in the certificate's file if None.
        key_password: of an encrypted key.
        check_hostname: off for brokers whose certificates name no host. Any certificate of `ca` will do then, so `ca`
            must be your own.

    Raises:
        ValueError: parts that make no sense without others.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: SecretReference | None = None
    check_hostname: bool = True

    def __post_init__(self) -> None:
        if self.certificate is None and (self.key or self.key_password):
            raise ValueError("tls: `key` and `key_password` belong to a `certificate`")
        if self.ca is None and not self.check_hostname:
            raise ValueError("tls: `check_hostname` can be off only with a `ca` of your own")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """How we authenticate: by name and password, or by a token (OAUTHBEARER), which is read anew per connection.

    Raises:
        ValueError: parts that the mechanism needs are missing, or parts are given that it does not use.
    """

    mechanism: MechanismName
    username: str | None = None
    password: SecretReference | None = None
    token: SecretReference | None = None
    allow_secret_over_plaintext: bool = False

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
    """What stands between us and a cluster's brokers; nothing, by default.

    Raises:
        ValueError: a secret would go over the wire for all to read, and that is not allowed by name.
    """

    tls: Tls | None = None
    sasl: Sasl | None = None

    def __post_init__(self) -> None:
        sasl = self.sasl
        if sasl and not self.tls and sasl.mechanism in _SHOW_THE_SECRET and not sasl.allow_secret_over_plaintext:
            raise ValueError(
                f"sasl: {sasl.mechanism} without tls lets everyone on the way read the secret; set `tls`, "
                "or `allow_secret_over_plaintext = true` if that is meant"
            )

    @property
    def protocol(self) -> str:
        """What a broker's listener of this kind is called in Metadata's and ZooKeeper's endpoints."""
        transport = "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{transport}" if self.sasl else transport


PLAINTEXT = Security()
