"""A token server on loopback: OAuth 2.0 with the grant `client_credentials`, and the keys (JWKS) of its signatures."""

import json
import socket
import ssl
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from kafka_io.closing import closed_on_error
from kafka_io.net.tls import wrapped_in_tls

CLIENT_ID = "penstock"
CLIENT_SECRET = "canary-of the client/+%"  # a form encodes its characters


class TokenServer:
    """A running token server. Tests may change its attributes.

    `lifetime_s` is the lifetime of its tokens. `requests` are the forms that clients sent. `failure` is an answer with
    a status that it gives instead of a token.
    """

    AUDIENCE = "kafka"

    def __init__(self, *, subject: str, lifetime_s: float = 3600.0, tls: ssl.SSLContext | None = None) -> None:
        self.subject = subject
        self.lifetime_s = lifetime_s
        self.requests: list[Mapping[str, str]] = []
        self.failure: tuple[int, bytes] | None = None
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server = _Server(("127.0.0.1", 0), lambda *arguments: _Handler(self, *arguments))
        self._server.tls = tls
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self) -> str:
        """A new signed token."""
        now = int(time.time())
        claims = {"sub": self.subject, "aud": self.AUDIENCE, "iat": now, "exp": now + self.lifetime_s}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "1"}, claims))
        return f"{signed}.{_encoded(self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"

    def answer(self, form: Mapping[str, str], authorization: str) -> tuple[int, bytes]:
        """The answer to a request for a token: a status and a body."""
        self.requests.append(form)
        if self.failure:
            return self.failure
        client, _, secret = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(client), unquote_plus(secret)) != (CLIENT_ID, CLIENT_SECRET):
            return 401, b'{"error":"invalid_client","error_description":"wrong secret %s"}' % secret.encode()
        token = {"access_token": self.token(), "token_type": "Bearer", "expires_in": self.lifetime_s}
        return 200, json.dumps(token).encode()

    def keys(self) -> bytes:
        """The public key in JSON (RFC 7517)."""
        public = self._key.public_key().public_numbers()
        numbers = {name: _encoded(value.to_bytes(length)) for name, value, length in _parts(public)}
        return json.dumps({"keys": [{"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", **numbers}]}).encode()


class _Server(ThreadingHTTPServer):
    """Speaks TLS with `tls`. The handshake is part of the first read, in the thread of the client."""

    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        client, address = super().get_request()
        if self.tls is not None:
            with closed_on_error(client):
                client = wrapped_in_tls(client, self.tls, server_side=True)
        return client, address


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    def __init__(self, server: TokenServer, *arguments: Any) -> None:
        self._tokens = server
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer with the keys."""
        self._send(200, self._tokens.keys())

    def do_POST(self) -> None:
        """Answer with a token."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        fields = {name: values[0] for name, values in form.items()}
        self._send(*self._tokens.answer(fields, self.headers["Authorization"]))

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _parts(public: rsa.RSAPublicNumbers) -> tuple[tuple[str, int, int], ...]:
    return ("n", public.n, (public.n.bit_length() + 7) // 8), ("e", public.e, 3)


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
