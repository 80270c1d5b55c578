"""Amazon MSK accepts a signed URL as the token. The signature is computed here as AWS's documentation describes it."""

import hmac
import sys
from base64 import urlsafe_b64decode
from hashlib import sha256
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.mechanisms import mechanism_of
from kafka_io.net.security import Sasl
from tests.kafka_io.net.test_canary import CANARY, assert_silent

SASL = Sasl(mechanism="OAUTHBEARER", aws_region="eu-central-1")
ACCESS_KEY = "AKIDEXAMPLE"


@pytest.fixture
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)


def signature(fields: dict[str, str]) -> str:
    """The signature of the URL with these fields (Signature Version 4, for a query)."""
    day = fields["X-Amz-Date"][:8]
    scope = f"{day}/eu-central-1/kafka-cluster/aws4_request"
    query = "&".join(f"{quote(name, safe='')}={quote(fields[name], safe='')}" for name in sorted(fields))
    request = f"GET\n/\n{query}\nhost:kafka.eu-central-1.amazonaws.com\n\nhost\n{sha256(b'').hexdigest()}"
    text = f"AWS4-HMAC-SHA256\n{fields['X-Amz-Date']}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    key = f"AWS4{CANARY}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


@pytest.mark.usefixtures("_identity")
def test_the_token_is_a_url_that_the_identity_of_the_process_signs() -> None:
    token = mechanism_of(SASL).first().removeprefix(b"n,,\x01auth=Bearer ").rstrip(b"\x01")
    url = urlsplit(urlsafe_b64decode(token + b"=" * (-len(token) % 4)).decode())
    assert (url.scheme, url.netloc, url.path) == ("https", "kafka.eu-central-1.amazonaws.com", "/")
    fields = dict(parse_qsl(url.query))
    assert (fields["Action"], fields["X-Amz-Expires"]) == ("kafka-cluster:Connect", "900")
    assert fields["X-Amz-Credential"].startswith(f"{ACCESS_KEY}/")
    fields.pop("User-Agent")  # the library adds it after the signature
    assert fields.pop("X-Amz-Signature") == signature(fields)


@pytest.mark.usefixtures("_identity")
def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(AuthenticationFailed, match=r"pip install penstock-etl\[msk\]"):
        mechanism_of(SASL)


@pytest.mark.usefixtures("_identity")
def test_an_error_of_the_library_is_short_and_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:  # fault X01
    monkeypatch.setenv("AWS_PROFILE", "missing\nprofile")
    with pytest.raises(AuthenticationFailed, match="AWS's library cannot sign a token: ") as raised:
        mechanism_of(SASL)
    assert str(raised.value).isprintable()
    assert_silent(raised.value)
