"""The SASL mechanisms PLAIN and OAUTHBEARER, and the choice of a mechanism by the settings."""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.authentication import Mechanism
from kafka_io.net.sasl.kerberos import Gssapi
from kafka_io.net.sasl.kerberos_library import open_context
from kafka_io.net.sasl.scram import Scram
from kafka_io.net.secret import Secret, one_line
from kafka_io.net.security import KERBEROS, Sasl

# RFC 6750, section 2.1. Other characters could end the field or the message.
BEARER_TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")


def mechanism_of(sasl: Sasl, token: Secret | None = None, *, host: str = "") -> Mechanism:
    """The mechanism for one connection. It reads its secret now; drop it after the login.

    Args:
        sasl: the settings.
        token: the token of a token server, if the settings name one.
        host: the host name of the broker, which is part of its principal in Kerberos.

    Raises:
        SecretMissing: the secret does not exist.
        AuthenticationFailed: this mechanism cannot send the secret, or Kerberos gives us no ticket.
        KdcUnreachable: no server of Kerberos answers.
    """
    if sasl.mechanism == KERBEROS:
        return Gssapi(open_context(sasl, host))
    if sasl.mechanism == "OAUTHBEARER":
        return OAuthBearer(token or _token_of(sasl), sasl.extensions)
    assert sasl.username is not None
    assert sasl.password is not None
    if sasl.mechanism == "PLAIN":
        return Plain(sasl.username, sasl.password.read())
    return Scram(sasl.mechanism, sasl.username, sasl.password.read())


def _token_of(sasl: Sasl) -> Secret:
    if sasl.aws_region is not None:
        return _msk_token(sasl.aws_region)
    assert sasl.token is not None
    return sasl.token.read()


def _msk_token(region: str) -> Secret:
    """A token for Amazon MSK: a signed URL, as AWS's own library makes it of the identity of this process.

    Raises:
        AuthenticationFailed: the library is not installed, or this process has no identity.
    """
    failure: str
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # noqa: PLC0415 - an extra

        token, _ = MSKAuthTokenProvider.generate_auth_token(region)
        return Secret(token.encode())
    except ImportError:
        failure = "`aws_region` needs AWS's library: pip install penstock-etl[msk]"
    except Exception as error:  # noqa: BLE001 - whatever the library says; its frames can contain a key
        failure = f"AWS's library cannot sign a token: {one_line(str(error))}"
    raise AuthenticationFailed(f"OAUTHBEARER: {failure}")


class Plain(Mechanism):
    """The client's side of PLAIN (RFC 4616). It sends name and password unencrypted; only TLS protects them."""

    name = "PLAIN"

    def __init__(self, username: str, password: Secret) -> None:
        self.secret = password
        self._username = username.encode()
        if b"\0" in self._username or b"\0" in password.reveal():
            raise self.failed("the name or password contains a NUL character, which cannot be sent")

    def first(self) -> bytes:
        """NUL, name, NUL, password. The empty first part requests no other identity."""
        return b"\0" + self._username + b"\0" + self.secret.reveal()

    def answer(self, challenge: bytes) -> None:
        """Check that the broker's answer is empty."""
        if challenge:
            raise self.failed("the broker requests another step, but the mechanism has none")


class OAuthBearer(Mechanism):
    """The client's side of OAUTHBEARER (RFC 7628). It sends a token of another program; only TLS protects it."""

    name = "OAUTHBEARER"

    def __init__(self, token: Secret, extensions: Mapping[str, str] = MappingProxyType({})) -> None:
        self.secret = token
        self._extensions = "".join(f"{key}={value}\x01" for key, value in extensions.items()).encode()
        if not BEARER_TOKEN.fullmatch(token.reveal()):
            raise self.failed("the token contains characters that bearer tokens cannot have")

    def first(self) -> bytes:
        """A header without channel binding and without another identity, the token in the form of HTTP, extensions."""
        return b"n,,\x01auth=Bearer " + self.secret.reveal() + b"\x01" + self._extensions + b"\x01"

    def answer(self, challenge: bytes) -> None:
        """Check the broker's answer: it is empty, or contains the reason of a refusal.

        The RFC's empty reply to a refusal is not sent, because it only leads to another refusal.
        """
        if challenge:
            raise self.failed(f"the broker refuses the token: {self._status(challenge)}")

    def _status(self, challenge: bytes) -> str:
        try:
            fields: Any = json.loads(challenge)
        except (ValueError, RecursionError):
            fields = None
        status = fields.get("status") if isinstance(fields, dict) else None
        return self.secret.masked(str(status)) if status else "the broker gives no reason"
