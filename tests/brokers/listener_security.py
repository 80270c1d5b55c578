"""Settings for TLS and SASL PLAIN that brokers from 0.9 to 4.1 understand: PKCS12 stores and a JAAS file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.certificates import Authority
from tests.brokers.secure import PASSWORD, USER

_STORE_PASSWORD = "stored"
_JAAS = f"""\
KafkaServer {{
  org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";
}};
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSecurity:
    """Settings and Java options for SSL and SASL_SSL listeners, and the authority that a client must trust."""

    authority: Path
    config: Mapping[str, str]
    options: tuple[str, ...]

    @classmethod
    def create_in(cls, folder: Path) -> "ListenerSecurity":
        """Create a new authority and its files. The user `alice` can log in."""
        authority = Authority.create_in(folder)
        jaas = folder / "jaas.conf"
        jaas.write_text(_JAAS)
        config = {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(authority.sign("server").packed(_STORE_PASSWORD)),
            "ssl.keystore.password": _STORE_PASSWORD,
            "ssl.key.password": _STORE_PASSWORD,
            "ssl.endpoint.identification.algorithm": "",
            "sasl.enabled.mechanisms": "PLAIN",
        }
        options = (f"-Djava.security.auth.login.config={jaas}",)
        return cls(authority=authority.own.certificate, config=config, options=options)
