"""Every server with HTTP has the same rules: a secret needs https or a permission, settings for TLS need https."""

import pytest

from kafka_io.net.http_address import HttpAddress
from kafka_io.net.security import Tls

PLAIN, ENCRYPTED = (HttpAddress.parse(f"{scheme}://server/path") for scheme in ("http", "https"))


def test_a_secret_crosses_the_network_unencrypted_only_with_a_permission() -> None:  # fault X08
    with pytest.raises(ValueError, match=r"http:// lets everyone on the way read the secret; .*_over_plaintext = true"):
        PLAIN.check_secret(allow_over_plaintext=False)
    PLAIN.check_secret(allow_over_plaintext=True)
    ENCRYPTED.check_secret(allow_over_plaintext=False)


def test_settings_for_tls_need_https() -> None:  # fault X07
    with pytest.raises(ValueError, match="begins with http://; write https:// to use `tls`"):
        PLAIN.check_tls(Tls())
    PLAIN.check_tls(None)
    ENCRYPTED.check_tls(Tls())
