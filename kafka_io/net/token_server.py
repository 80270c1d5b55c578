"""Tokens for OAUTHBEARER from a token server, by the grant `client_credentials` (RFC 6749, section 4.4; KIP-768).

The connections of a process share a token, because token servers limit how often they answer. A token is used for four
fifths of its lifetime, as in Kafka. The server is the one of the settings: redirects are not followed, and no broker
can name another (fault X10).
"""

import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from urllib.parse import urlencode

import msgspec

from kafka_io.errors import AuthenticationFailed, Corrupt, KafkaIOError, TokenServerUnavailable, value_of
from kafka_io.net.http_exchange import HttpAnswer, HttpContent, HttpServer, http_exchange
from kafka_io.net.http_login import HttpLogin
from kafka_io.net.secret import Secret
from kafka_io.net.security import ClientCredentials
from kafka_io.typed_json import decode_json

_MAX_ANSWER_BYTES = 256 * 1024
_USED_SHARE = 0.8  # of a token's lifetime (sasl.login.refresh.window.factor)
_OK, _TOO_MANY_REQUESTS, _SERVER_ERROR = 200, 429, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token, and the seconds for which it is valid; 0 if that is unknown."""

    secret: Secret
    lifetime_s: float


class _TokenAnswer(msgspec.Struct):
    """The fields of an answer that matter (RFC 6749, sections 5.1 and 5.2)."""

    access_token: str = ""
    expires_in: float | str | None = None
    error: str | None = None
    error_description: str | None = None


class _TimesOfToken(msgspec.Struct):
    """The claims of a JWT that say when it was issued and when it expires (RFC 7519)."""

    iat: float
    exp: float


def request_token(server: ClientCredentials, *, timeout_s: float) -> AccessToken:
    """Ask the token server for a token.

    Raises:
        SecretMissing: the secret of the client does not exist.
        AuthenticationFailed: the token server refuses the client.
        TokenServerUnavailable: the token server cannot answer now.
        KafkaIOError: the connection failed, see `http_exchange`; or the answer contains no token.
    """
    login = HttpLogin.client_credentials(server.client_id, server.client_secret.read())
    # An error is raised here, because the frames of the other function contain the token.
    return value_of(_token_or_error(server, login, timeout_s))


def _token_or_error(server: ClientCredentials, login: HttpLogin, timeout_s: float) -> AccessToken | KafkaIOError:
    address = server.address
    form = {"grant_type": "client_credentials", **({"scope": server.scope} if server.scope else {})}
    try:
        answer = http_exchange(
            HttpServer.at(address, server.tls, login),
            address.path or "/",
            HttpContent(media_type="application/x-www-form-urlencoded", data=urlencode(form).encode()),
            timeout_s=timeout_s,
            max_bytes=_MAX_ANSWER_BYTES,
        )
    except KafkaIOError as error:
        return type(error)(f"the token server {server.url}: {error.reason}")
    fields = _fields_of(answer)
    if answer.status != _OK or fields is None or not fields.access_token:
        return _refusal(server.url, answer.status, fields, login)
    return AccessToken(secret=Secret(fields.access_token.encode()), lifetime_s=_lifetime_s(fields))


def _fields_of(answer: HttpAnswer) -> _TokenAnswer | None:
    try:
        return decode_json(answer.body, _TokenAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _refusal(url: str, status: int, fields: _TokenAnswer | None, login: HttpLogin) -> KafkaIOError:
    words = (fields.error, fields.error_description) if fields else ()
    reason = f"the token server {url} answers {status}" + "".join(f": {login.masked(word)}" for word in words if word)
    if status == _OK:
        return Corrupt(f"{reason} without an `access_token`; is `url` that of a token endpoint?")
    if status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR:
        return TokenServerUnavailable(reason)
    return AuthenticationFailed(f"{reason}; check `client_id`, `client_secret` and `scope`")


def _lifetime_s(fields: _TokenAnswer) -> float:
    """The lifetime that the answer states, otherwise the one in the token itself if it is a JWT."""
    try:
        return max(0.0, float(fields.expires_in or 0) or _jwt_lifetime_s(fields.access_token))
    except (ValueError, RecursionError):
        return 0.0


def _jwt_lifetime_s(token: str) -> float:
    """The time between the claims `iat` and `exp` of a JWT. The signature is not checked: the broker does this.

    Raises:
        ValueError: the token is not a JWT with these claims.
    """
    claims = token.partition(".")[2].partition(".")[0]
    times = decode_json(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)), _TimesOfToken)
    return times.exp - times.iat


class TokenCache:
    """The newest token of each token server, for all threads of a process. Its secrets are printed as `***`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._tokens: dict[ClientCredentials, tuple[Secret, float]] = {}

    def token(self, server: ClientCredentials, *, timeout_s: float) -> Secret:
        """A token that is valid for at least a fifth of its lifetime. Raises the errors of `request_token`."""
        with self._lock:  # other threads wait for the same token instead of requesting one too
            kept, until = self._tokens.get(server, (None, 0.0))
            if kept is not None and self._clock() < until:
                return kept
            started = self._clock()
            token = request_token(server, timeout_s=timeout_s)
            self._tokens[server] = (token.secret, started + token.lifetime_s * _USED_SHARE)
            return token.secret

    def forget(self, server: ClientCredentials) -> None:
        """Drop the token, because a broker refused it: the next login requests another."""
        with self._lock:
            self._tokens.pop(server, None)


TOKENS = TokenCache()
"""The tokens of this process."""
