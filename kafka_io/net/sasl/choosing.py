"""Chooses the SASL mechanism of the settings."""

from kafka_io.net.sasl.mechanism import Mechanism
from kafka_io.net.sasl.oauthbearer import OAuthBearer
from kafka_io.net.sasl.plain import Plain
from kafka_io.net.sasl.scram import Scram
from kafka_io.net.security import Sasl


def mechanism_of(sasl: Sasl) -> Mechanism:
    """The mechanism for one connection. It reads its secret now; drop it after the login.

    Raises:
        SecretMissing: the secret does not exist.
        AuthenticationFailed: this mechanism cannot send the secret.
    """
    if sasl.mechanism == "OAUTHBEARER":
        assert sasl.token is not None
        return OAuthBearer(sasl.token.read())
    assert sasl.username is not None
    assert sasl.password is not None
    if sasl.mechanism == "PLAIN":
        return Plain(sasl.username, sasl.password.read())
    return Scram(sasl.mechanism, sasl.username, sasl.password.read())
