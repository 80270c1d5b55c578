"""The broker versions on which tests run: their jars, and the features that each version supports (decision D25)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_UNAVAILABLE = (
    "com.sun.jmx:jmxri",
    "com.sun.jdmk:jmxtools",
    "javax.jms:jms",
)  # dependencies of log4j 1.2.15 that no repository has
_JAXB = "javax.xml.bind:jaxb-api:2.3.1"  # removed from Java in version 11
_LOG = "org.slf4j:slf4j-simple:1.7.36"  # without this jar these versions print no log
_OLD_CODECS = ("none", "gzip", "snappy", "lz4")


def _without_api_versions(version: str) -> Mapping[str, str]:
    """Settings of librdkafka for brokers before 0.10, which do not answer ApiVersions."""
    # At a lower log level librdkafka prints that the other settings are deprecated.
    return {"api.version.request": "false", "broker.version.fallback": version, "log_level": "3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A broker version, in the build for one version of Scala."""

    scala: str
    excluded: tuple[str, ...] = ()
    """`organisation:module` of dependencies that are not needed."""
    added: tuple[str, ...] = ()
    """`organisation:module:version` of jars that are needed but are not dependencies."""
    codecs: tuple[str, ...] = (*_OLD_CODECS, "zstd")
    """The codecs that a producer can use."""
    librdkafka: Mapping[str, str] = field(default_factory=dict)
    """Settings that a librdkafka client needs for this version."""
    modes: tuple[Literal["zookeeper", "kraft"], ...] = ("zookeeper",)
    """The modes that the broker supports. Most tests use the last of them."""
    lists_itself: bool = True
    """Whether metadata lists the broker before a topic exists."""
    headers: bool = True
    """Whether the broker stores record headers."""
    times: bool = True
    """Whether the broker stores record timestamps."""
    transactions: bool = True
    security_protocols: tuple[str, ...] = ("SSL", "SASL_SSL")
    """The security protocols that the broker supports and the tests use."""


RELEASES: Mapping[str, Release] = {
    "0.8.2.2": Release(
        scala="2.11",
        excluded=_UNAVAILABLE,
        codecs=_OLD_CODECS,
        librdkafka=_without_api_versions("0.8.2"),
        lists_itself=False,
        headers=False,
        times=False,
        transactions=False,
        security_protocols=(),
    ),
    "0.9.0.1": Release(
        scala="2.11",
        excluded=_UNAVAILABLE,
        codecs=_OLD_CODECS,
        librdkafka=_without_api_versions("0.9.0"),
        headers=False,
        times=False,
        transactions=False,
        security_protocols=("SSL",),
    ),
    "0.10.2.2": Release(scala="2.11", added=(_JAXB,), codecs=_OLD_CODECS, headers=False, transactions=False),
    "0.11.0.3": Release(scala="2.11", added=(_JAXB,), codecs=_OLD_CODECS),
    "1.1.1": Release(scala="2.12", added=(_LOG,), codecs=_OLD_CODECS),
    "2.8.2": Release(scala="2.13", added=(_LOG,), modes=("kraft", "zookeeper")),
    "3.9.1": Release(scala="2.13", added=(_LOG,), modes=("zookeeper", "kraft")),
    "4.1.0": Release(scala="2.13", added=(_LOG,), modes=("kraft",)),
}
