"""The brokers that tests run, a row each: what to download, beyond what the broker itself asks for (decision D25)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_DEAD = ("com.sun.jmx:jmxri", "com.sun.jdmk:jmxtools", "javax.jms:jms")  # log4j 1.2.15 asks for them; nobody has them
_JAXB = "javax.xml.bind:jaxb-api:2.3.1"  # left Java with 11
_LOG = "org.slf4j:slf4j-simple:1.7.36"  # without it these print nothing, not even why they end
_OLD_CODECS = ("none", "gzip", "snappy", "lz4")


def _not_asked(version: str) -> Mapping[str, str]:
    """Before 0.10 a broker could not be asked what it speaks."""
    # Below the log level librdkafka says, at length, that the others are deprecated.
    return {"api.version.request": "false", "broker.version.fallback": version, "log_level": "3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version of the broker, with the Scala it is built for."""

    scala: str
    excluded: tuple[str, ...] = ()
    """`organisation:module` of what its jars ask for and do not need."""
    added: tuple[str, ...] = ()
    """`organisation:module:version` of what they need and do not ask for."""
    codecs: tuple[str, ...] = (*_OLD_CODECS, "zstd")
    """What a producer may compress with."""
    librdkafka: Mapping[str, str] = field(default_factory=dict)
    """What a client made with librdkafka must be told to speak to it."""
    modes: tuple[Literal["zookeeper", "kraft"], ...] = ("zookeeper",)
    """Where it can keep its cluster; tests that do not care take the last."""
    lists_itself: bool = True
    """Its metadata names it before there is a topic."""
    headers: bool = True
    """It keeps the headers of records."""
    times: bool = True
    """It keeps the timestamps of records."""
    transactions: bool = True
    locks: tuple[str, ...] = ("SSL", "SASL_SSL")
    """The security protocols that it knows, and the tests use."""


RELEASES: Mapping[str, Release] = {
    "0.8.2.2": Release(
        scala="2.11",
        excluded=_DEAD,
        codecs=_OLD_CODECS,
        librdkafka=_not_asked("0.8.2"),
        lists_itself=False,
        headers=False,
        times=False,
        transactions=False,
        locks=(),
    ),
    "0.9.0.1": Release(
        scala="2.11",
        excluded=_DEAD,
        codecs=_OLD_CODECS,
        librdkafka=_not_asked("0.9.0"),
        headers=False,
        times=False,
        transactions=False,
        locks=("SSL",),
    ),
    "0.10.2.2": Release(scala="2.11", added=(_JAXB,), codecs=_OLD_CODECS, headers=False, transactions=False),
    "0.11.0.3": Release(scala="2.11", added=(_JAXB,), codecs=_OLD_CODECS),
    "1.1.1": Release(scala="2.12", added=(_LOG,), codecs=_OLD_CODECS),
    "2.8.2": Release(scala="2.13", added=(_LOG,), modes=("kraft", "zookeeper")),
    "3.9.1": Release(scala="2.13", added=(_LOG,), modes=("zookeeper", "kraft")),
    "4.1.0": Release(scala="2.13", added=(_LOG,), modes=("kraft",)),
}
