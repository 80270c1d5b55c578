"""Schedules: which topics are loaded together, when they are loaded, and the limits for their checks."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from resources.settings.section import Section

REST = "topics"
"""The name of the schedule for topics that belong to no other schedule."""
NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
"""The form of the names of clusters and schedules. In Dagster names have no dash: `a-b` and `a_b` would collide."""
_MAX_NAME_LENGTH = 100
MAX_MINUTES = 50_000_000  # almost a century
"""The longest time in minutes that settings take."""


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Patterns = Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], BeforeValidator(_as_list)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_list)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def matches(patterns: tuple[str, ...], topic: str) -> bool:
    """Whether one of `patterns` matches the whole name. An empty pattern matches nothing."""
    return any(pattern and re.fullmatch(pattern, topic, re.DOTALL) for pattern in patterns)


class CheckLimits(Section):
    """Limits for the checks of a table. A check warns when its limit is reached."""

    lag: Annotated[int, Field(ge=0, le=10**15)] | None = None
    """Maximum lag of a topic in offsets: records, or bytes of the log in 0.7. Unlimited by default."""

    late_minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES, allow_inf_nan=False)] = 60
    """Maximum minutes that a record waits until it is loaded."""

    retention_left: Share = 0.5
    """Minimum share of the retention time that a record has left when it is loaded. Below half of this share the check
    reports an error."""


_CRON_NAMES = {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
_CRON_TERM = re.compile(r"(?:\*|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>[0-9]+))?(?:#[1-5])?")
_LAST_DAY, _NO_DAY = "l", "?"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class _CronField(NamedTuple):
    """One of the five fields: its numbers, words for numbers from the lowest on, and texts that are a term alone."""

    name: str
    lowest: int
    highest: int
    longest_step: int
    words: Sequence[str] = ()
    alone: Sequence[str] = ()
    counts: bool = False
    """Whether `#2` can follow: the second such day of the month."""

    def check(self, text: str) -> None:
        """Check the text of the field. Raises ValueError."""
        for term in text.split(","):
            match = _CRON_TERM.fullmatch(term)
            if term not in self.alone and not (match and self._has(match) and (self.counts or "#" not in term)):
                raise ValueError(f"{term!r} is not possible for the {self.name} of a cron expression")

    def _has(self, match: re.Match[str]) -> bool:
        """Whether the numbers of a term are those of the field, and its step is not longer than the field."""
        ends = [word for word in (match["low"], match["high"]) if word]
        numbers = [self.words.index(word) + self.lowest if word in self.words else word for word in ends]
        step = int(match["step"] or 1)
        return 0 < step <= self.longest_step and all(
            str(number).isdecimal() and self.lowest <= int(number) <= self.highest for number in numbers
        )


_CRON_FIELDS = (
    _CronField("minute", 0, 59, 60),
    _CronField("hour", 0, 23, 24),
    _CronField("day of the month", 1, 31, 31, alone=(_LAST_DAY, _NO_DAY)),
    _CronField("month", 1, 12, 12, _MONTHS),
    _CronField("weekday", 0, 7, 7, _WEEKDAYS, alone=(_NO_DAY, *(f"l{day}" for day in range(7))), counts=True),
)
_NEVER = re.compile(r"\S+ \S+ 3[01] (?:2|feb) \S+")


def check_cron(text: str) -> str:
    """Check a cron expression: whatever this accepts, Dagster accepts too (fault F05).

    Raises:
        ValueError: it is none, or it names a day that never comes.
    """
    words = text.lower().split()
    if [text.lower()] != words or text.lower() not in _CRON_NAMES:
        if len(words) != len(_CRON_FIELDS):
            raise ValueError(
                f"write a cron expression of {len(_CRON_FIELDS)} fields (minute, hour, day, month, weekday), such as "
                '"*/15 * * * *", or a name such as "@hourly"'
            )
        for field, word in zip(_CRON_FIELDS, words, strict=True):
            field.check(word)
        if _NEVER.fullmatch(" ".join(words)):
            raise ValueError("this day of February never comes")
    return text


Cron = Annotated[str, AfterValidator(check_cron)]
"""A cron expression."""
NEVER = "never"


def _cron_or_never(text: str) -> str:
    return text if text == NEVER else check_cron(text)


CronOrNever = Annotated[str, AfterValidator(_cron_or_never)]
"""A cron expression, or the word that turns a schedule off."""


class Timing(Section):
    """When the topics of a schedule are loaded, and the limits for their checks."""

    cron: str = "*/15 * * * *"
    limits: CheckLimits = CheckLimits()


class ScheduleSettings(Section):
    """Topics that are loaded at their own times."""

    topics: Patterns = Field(min_length=1)
    """Regular expressions that match whole topic names. A topic belongs to the first schedule that matches it."""

    clusters: Texts | None = None
    """Names of the clusters whose topics can belong to the schedule. All clusters by default."""

    cron: Cron | None = None
    """When the topics are loaded, in UTC. The `cron` of the file by default."""

    limits: CheckLimits | None = None
    """Limits for the checks of the tables. The `limits` of the file by default."""

    def takes(self, cluster: str, topic: str) -> bool:
        """Whether a topic of this cluster belongs to the schedule."""
        return self.takes_cluster(cluster) and matches(self.topics, topic)

    def takes_cluster(self, cluster: str) -> bool:
        """Whether topics of this cluster can belong to the schedule."""
        return self.clusters is None or cluster in self.clusters


def check_names(kind: str, names: Iterable[str]) -> None:
    """Check names of clusters, schedules or registries: Dagster must accept and distinguish them.

    Raises:
        ValueError: a name has another form, or two names differ only by `-` and `_`.
    """
    seen: dict[str, str] = {}
    for name in names:
        if not NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
            raise ValueError(
                f"{kind}.{name}: a name has lower-case letters and digits, separated by single - or _, "
                f"and at most {_MAX_NAME_LENGTH} characters"
            )
        twin = seen.setdefault(name.replace("-", "_"), name)
        if twin != name:
            raise ValueError(f"{kind}: the names {twin} and {name} differ only by - and _; rename one of them")
