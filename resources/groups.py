"""Groups of topics: which topics belong together, when they are loaded, and what the checks hold them to."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from resources.section import Section

REST = "topics"
"""The group of the topics that no other group takes."""
NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
"""Of clusters and groups. Dagster's names have no dash, so two that differ by one alone are refused as well."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Patterns = Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], BeforeValidator(_listed)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Share = Annotated[float, Field(ge=0, le=1)]


def matches(patterns: tuple[str, ...], topic: str) -> bool:
    """Whether one of `patterns` matches the whole name; an empty one matches nothing."""
    return any(pattern and re.fullmatch(pattern, topic, re.DOTALL) for pattern in patterns)


class Limits(Section):
    """What the checks hold tables to. A check warns at its limit."""

    lag: Annotated[int, Field(ge=0)] | None = None
    """The most offsets that a topic may be behind; none by default. Bytes of the log in 0.7, records later."""

    late_minutes: Annotated[float, Field(gt=0)] = 60
    """How long a record may wait to be loaded."""

    retention_left: Share = 0.5
    """The share of its retention that a record must have left when it is loaded. Below half of that share the check
    is an error."""


class Timing(Section):
    """When the topics of a group are loaded, and what is expected of that."""

    cron: str = "*/15 * * * *"
    limits: Limits = Limits()


class Group(Section):
    """Topics with a schedule of their own: those that a pattern of `topics` matches whole, in these clusters."""

    topics: Patterns = Field(min_length=1)
    """Regular expressions that match whole names. The first group that matches a topic takes it."""

    clusters: Texts | None = None
    """Names of clusters; all by default."""

    cron: str | None = None
    """When its topics are loaded; as the file's own `cron` by default."""

    limits: Limits | None = None
    """What the checks hold its tables to; the file's own by default."""

    def takes(self, cluster: str, topic: str) -> bool:
        """Whether a topic of that cluster is in this group."""
        return self.of_cluster(cluster) and matches(self.topics, topic)

    def of_cluster(self, cluster: str) -> bool:
        """Whether it takes topics of that cluster at all."""
        return self.clusters is None or cluster in self.clusters


def check_names(kind: str, names: Any) -> None:
    """Whether Dagster can tell all of these apart.

    Raises:
        ValueError: a name that it does not take, or two that it cannot tell apart.
    """
    seen: dict[str, str] = {}
    for name in names:
        if not NAME.fullmatch(name) or len(name) > 100:
            raise ValueError(f"{kind}.{name}: a name has small letters and digits, with single - or _ between them")
        twin = seen.setdefault(name.replace("-", "_"), name)
        if twin != name:
            raise ValueError(f"{kind}: {twin} and {name} are too much alike")
