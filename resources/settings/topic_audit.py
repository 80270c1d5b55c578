"""Settings that compare a topic's table with what its producers sent, and the format of the topic with their counts."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from resources.settings.section import Section
from resources.settings.topic_formats import TopicFormat

COUNT_COLUMNS: Mapping[str, str] = {
    "topic": "string",
    "window_start_ms": "long",
    "window_ms": "long",
    "producer": "string",
    "session": "string",
    "count": "long",
}
"""The columns that the table of a counts topic has, with their types. See docs/event-time.md."""
_RECORD_TIME = "timestamp"


class TopicAudit(Section):
    """Settings that compare the table of a topic with the counts of its producers."""

    audit: Annotated[str, Field(min_length=1)] | None = None
    """A topic of the same cluster with the counts of producers: how many records each of them sent in each hour.
    `penstock complete` then also compares the hours of the table with it. It needs `event_time`. The counts topic is
    loaded as JSON, with the columns of docs/event-time.md. None by default."""

    audit_share: Annotated[float, Field(gt=0, le=1)] = 0.999
    """The share of the records that producers counted, which the table must have for an hour to be complete."""

    audit_hours: Annotated[int, Field(ge=1, le=31 * 24)] = 24
    """How many hours `penstock complete` compares: the last ones that end at or before its time."""

    @model_validator(mode="after")
    def _checked_audit(self) -> Self:
        # The settings that `penstock config show` prints contain all defaults, and load again.
        fields = type(self).model_fields
        given = [name for name in ("audit_hours", "audit_share") if getattr(self, name) != fields[name].default]
        if self.audit is None and given:
            raise ValueError(f"`{given[0]}` needs an `audit`, the name of a topic with counts")
        return self


def counts_problem(format_: TopicFormat) -> str | None:
    """Why a topic of this format cannot hold counts; None if it can."""
    has_columns = COUNT_COLUMNS.items() <= format_.columns.items()
    if not _is_open(format_) and (format_.format != "json" or not has_columns):
        return (
            'it has a `format` without the columns of counts; leave `format` out, or write "json" with the '
            "`columns` of docs/event-time.md"
        )
    if format_.event_time not in {None, _RECORD_TIME}:
        return f'its `event_time` must be "{_RECORD_TIME}", the time at which counts are sent'
    return None


def counts_format(format_: TopicFormat) -> TopicFormat:
    """The format of a topic that holds counts: what its section leaves open is as counts need it.

    One count that does not decode must not stop the load of all others, because `penstock complete` reports it.
    """
    update: dict[str, Any] = {"event_time": _RECORD_TIME}
    if _is_open(format_):
        update |= {"format": "json", "columns": dict(COUNT_COLUMNS)}
    if "max_bad_share" not in format_.model_fields_set:
        update["max_bad_share"] = 1.0
    return format_.model_copy(update=update)


def _is_open(format_: TopicFormat) -> bool:
    """Whether the section says no format, so that it can be the one of counts."""
    return "format" not in format_.model_fields_set
