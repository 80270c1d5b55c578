"""A real broker that demands a login with Kerberos, of a KDC that runs beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.ports import HOST
from tests.brokers.real import RealBroker
from tests.kerberos.kdc import REALM, Kdc, running_kdc

SERVICE = f"kafka/{HOST}"
CLIENT = "alice"
SESSION_S = 2.0
"""After so many seconds a client must log in again (KIP-368)."""

_LISTENER = "SASL_PLAINTEXT"
# Kafka finds the realm in a class that Java does not export; Kafka's own scripts do the same for these versions.
_JAVA = ("--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",)
# The broker only accepts tickets, for which the key is enough: Java does not ask the KDC.
_JAAS = """\
KafkaServer {{
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true isInitiator=false doNotPrompt=true keyTab="{keytab}" principal="{principal}";
}};
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosBroker:
    """A running broker and its KDC. The listener PLAINTEXT needs no login; `bootstrap` is the one with Kerberos."""

    broker: RealBroker
    kdc: Kdc

    @property
    def bootstrap(self) -> str:
        """The address of the listener with Kerberos."""
        return f"{HOST}:{self.broker.ports[_LISTENER]}"


@contextmanager
def kerberos_broker(folder: Path, version: str, *, zookeeper: str | None = None) -> Iterator[KerberosBroker]:
    """Run a KDC and a broker for the length of a `with` block."""
    (folder / "kdc").mkdir(parents=True)
    with running_kdc(folder / "kdc", CLIENT, SERVICE) as kdc:
        jaas = folder / "jaas.conf"
        jaas.write_text(_JAAS.format(keytab=kdc.keytab(SERVICE), principal=f"{SERVICE}@{REALM}"))
        config = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "connections.max.reauth.ms": f"{SESSION_S * 1000:.0f}",
        }
        options = (
            f"-Djava.security.auth.login.config={jaas}",
            f"-Djava.security.krb5.conf={kdc.config}",
            *_JAVA,
        )
        broker = RealBroker(
            version,
            folder / "broker",
            zookeeper=zookeeper,
            listeners={_LISTENER: _LISTENER},
            config=config,
            options=options,
        )
        with broker:
            yield KerberosBroker(broker=broker, kdc=kdc)
