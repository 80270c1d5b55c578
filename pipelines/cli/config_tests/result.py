"""The result of a test of `penstock config check`, and how each problem is repaired."""

from collections.abc import Callable, Mapping
from typing import Any

from kafka_io.errors import LocatedError, Where
from pipelines.cli.output.result import show_trace
from pipelines.ledger.work import SliceFailure

CheckResult = Mapping[str, Any]
"""A result of `penstock config check --json`: the test, whether it is ok, a sentence, the error, and its repair."""

UNKNOWN_REPAIR = "Run `penstock --debug config check`: it shows the details."
REPAIRS: Mapping[str, str] = {
    "AuthenticationFailed": "Correct `sasl` of the cluster, or `username`, `password` or `token` of the registry.",
    "AuthorizationFailed": "Let the administrator of the brokers allow READ and DESCRIBE_CONFIGS for the topics.",
    "BrokerRefused": "Start that broker, or let it advertise an address that this machine reaches.",
    "CacheUnsafe": "Set the mode of the folder to 700, or set XDG_CACHE_HOME to a folder of this user.",
    "ClockWrong": "Synchronise the clock with NTP, for example with `timedatectl set-ntp true`.",
    "ConnectFailed": "Correct the address in the settings, start the server, or open the firewall for this machine.",
    "ConnectionLost": "Correct the port: it may be one with TLS (then set `tls = true`), or another program.",
    "DeadlineExceeded": "Correct the port: it may be one with TLS (then set `tls = true`), or another program.",
    "ExtraMissing": "Install the extra with pip, as the message says.",
    "FileNotFoundError": "Create the file, or correct its path in the settings.",
    "IsADirectoryError": "Correct the path in the settings: it must be a file.",
    "InvalidSchema": "Correct the file that describes the columns.",
    "JavaNotFound": "Install Java 17 or later, or the extra `spark`, and correct JAVA_HOME if it is set.",
    "KdcUnreachable": "Start the KDC, open the firewall for this machine, or correct `kdc` of the realm in krb5.conf.",
    "KerberosClockSkew": "Synchronise the clocks with NTP, for example with `timedatectl set-ntp true`.",
    "KerberosPrincipalUnknown": "Correct `principal` or `service_name`, or the host names of the brokers.",
    "KerberosRealmUnknown": "Correct krb5.conf, or set KRB5_CONFIG to the path of the right file.",
    "KerberosTicketMissing": "Run `kinit` as the user who runs Penstock, or set `keytab` and `principal` in `sasl`.",
    "KeytabUnusable": "Correct `keytab` or `principal`, let this user read the file, or get a new keytab.",
    "LakeRefused": "Let this user write to the lake: correct `lake`, `lake_options`, or the rights there.",
    "LakeUnavailable": "Correct `lake` and the endpoint in `lake_options`, and test the network to the store.",
    "PermissionError": "Let this user read the file.",
    "RegistryError": "Correct the path (chroot) after the last address of `zookeeper`.",
    "RegistryUnavailable": "Correct the address of `zookeeper`, start ZooKeeper, or open the firewall.",
    "RightsMissing": "Let an administrator run the command of the message, or exclude the topics with `deny`.",
    "SchemaRegistryError": "Correct `url` of the registry: it must be the address of a schema registry.",
    "SchemaRegistryUnavailable": "Correct `url` of the registry, start it, or open the firewall.",
    "SecretMissing": "Set the variable, or create the file, for the user who runs Penstock.",
    "SettingsError": "Correct the settings file. docs/settings.md lists all keys.",
    "SpaceShort": "Free space on this disk. `penstock clean --all --delete` removes files that nobody needs.",
    "StorageUnusable": "Correct `storage` in dagster.yaml, start its database, or run `dagster instance migrate`.",
    "StoreUnsafe": "Use a store that refuses to create an object twice. docs/object-stores.md lists the options.",
    "TlsFailed": "Correct `ca`, `certificate` and `key`, and use a host name that the certificate of the server has.",
    "TopicUnknown": "Correct the name of the topic.",
    "Unsupported": "Correct the address, set `zookeeper` for Kafka 0.7, and remove `generation`.",
}
"""What to do about an error, by its kind."""


class BrokerRefused(LocatedError):
    """Some brokers of a cluster cannot be reached from this machine, although others can."""


class ClockWrong(LocatedError):
    """This machine, the store or the producers have another time."""


class RightsMissing(LocatedError):
    """The client may not do with topics what a load needs."""


class SpaceShort(LocatedError):
    """A disk is almost full."""


class StorageUnusable(LocatedError):
    """Dagster cannot use its storage."""


def passed(subject: str, message: str) -> CheckResult:
    """The result of a test that passed."""
    return {"check": subject, "ok": True, "message": message, "errors": [], "repair": None}


def failed(subject: str, error: Exception) -> CheckResult:
    """The result of a test that failed with this error."""
    failure = SliceFailure.of(error, Where())
    show_trace(failure.trace)
    return {
        "check": subject,
        "ok": False,
        "message": str(failure),
        "errors": [failure.as_dict()],
        "repair": REPAIRS.get(failure.kind, UNKNOWN_REPAIR),
    }


def checked(subject: str, test: Callable[[], str]) -> CheckResult:
    """The result of `test`, which returns a message or raises the reason why it fails."""
    try:
        return passed(subject, test())
    except Exception as error:  # noqa: BLE001 - any error is the reason why the test fails
        return failed(subject, error)
