"""The release of a broker, as kafka-python's table of API versions has it."""

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from kafka_io.brokers.broker_description import release_of
from kafka_io.wire.conversation import ApiVersionRanges

RELEASES = {".".join(map(str, release)): offered for release, offered in BROKER_API_VERSIONS.items()}


def names(release: str) -> list[str]:
    """All releases that a text such as "2.4 to 2.6" means."""
    first, _, last = release.partition(" to ")
    if not last:
        return release.removesuffix(" or later").split(" or ")
    major, _, minor = first.partition(".")
    return [f"{major}.{number}" for number in range(int(minor), int(last.partition(".")[2]) + 1)]


MODERN = [release for release in RELEASES if not release.startswith(("0.8", "0.9"))]


@pytest.mark.parametrize("release", MODERN)
def test_a_release_is_recognised(release: str) -> None:
    recognised = release_of(ApiVersionRanges(RELEASES[release]))
    assert release in names(recognised) or (release, recognised) == ("4.3", "4.2 or later")


@pytest.mark.parametrize("release", RELEASES.keys() - set(MODERN))
def test_a_release_that_does_not_report_its_versions_has_no_number_of_its_own(release: str) -> None:
    assert release_of(ApiVersionRanges(RELEASES[release])) == "0.8 or 0.9"


def test_a_broker_that_is_older_than_every_known_release_has_no_number() -> None:
    assert release_of(ApiVersionRanges({})) == "0.8 or 0.9"


def test_a_broker_that_is_newer_than_every_known_release_counts_as_the_newest() -> None:
    offered = dict.fromkeys(range(100), (0, 99))
    assert release_of(ApiVersionRanges(offered)) == "4.2 or later"
