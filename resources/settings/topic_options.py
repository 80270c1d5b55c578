"""The settings of a topic: its format, its audit, how it appears in Dagster's catalog, and its state table."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationInfo, model_validator

from resources.settings.rules.topic_tables import TopicTables
from resources.settings.schedules import MAX_MINUTES, Texts, check_cron
from resources.settings.section import Section, taken
from resources.settings.time_windows import TimeWindows, WindowLength
from resources.settings.topic_audit import TopicAudit, counts_format
from resources.settings.topic_formats import RAW_FORMAT, TopicFormat
from resources.settings.topic_state import UNAVAILABLE_VALUE, StateSettings
from resources.table_formats import TableFormat

_MAX_KEEP_DAYS = 36_500


def _automation(text: str) -> str:
    if text not in {"eager", "none"} and not text.startswith("on_cron:"):
        raise ValueError('write "eager", "none", or "on_cron: " with a cron expression')
    if text.startswith("on_cron:"):
        check_cron(text.removeprefix("on_cron:").strip())
    return text


def _text_of_time(value: object) -> object:
    return value.isoformat() if isinstance(value, (date, datetime)) else value


class TopicCatalog(Section):
    """Settings that say how a topic appears in Dagster's catalog."""

    asset_group: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_]+$")
    """Dagster: the asset group in which the assets are shown. By default it has the name of the cluster, and after it
    that of the topic's schedule."""

    owners: Texts = ()
    """Dagster: the owners of the assets: email addresses, or names of teams as `team:NAME`."""

    tags: dict[str, str] = Field(default={})
    """Dagster: tags of the assets."""

    description: str | None = None
    """Dagster: the description of the assets."""

    automation: Annotated[str, AfterValidator(_automation)] | None = None
    """Dagster: the automation condition of the assets: "eager", "none", or "on_cron: " with a cron expression. By
    default no condition starts loads; the schedule of the topic and the sensor for new topics do."""

    freshness_minutes: Annotated[float, Field(gt=0, le=MAX_MINUTES, allow_inf_nan=False)] | None = None
    """Dagster: minutes after which an asset without new rows counts as stale. Without it, no asset does."""

    sample_rows: Annotated[int, Field(ge=0, le=100)] = 0
    """Dagster: how many rows of each load its event shows. Dagster's storage keeps a copy of these rows."""

    blocking_checks: bool = False
    """Dagster: whether a failed check stops the assets downstream that are in the same run."""

    complete: WindowLength | None = None
    """Dagster: the asset `<key of the table>/hours` with a partition for each hour, or `<key of the table>/days` with
    one for each day. A partition is materialized when the table is complete through its end. It needs `event_time`; see
    docs/event-time.md. None by default."""

    complete_since: Annotated[str, BeforeValidator(_text_of_time)] | None = None
    """Dagster: the first partition of complete hours or days, such as `2026-01-31` or `2026-01-31T07:00`, in
    `time_zone`. By default it is the first one from which the table has rows."""

    time_zone: str | None = None
    """Dagster: the time zone of complete hours or days, such as "Europe/Berlin"; UTC by default. Days follow it. Hours
    are those of UTC, so it must differ from UTC by whole hours; then its name must be that of downstream partitions."""

    @model_validator(mode="after")
    def _checked_complete(self) -> Self:
        others = [name for name in ("complete_since", "time_zone") if getattr(self, name) is not None]
        if self.complete is None and others:
            raise ValueError(f"`{others[0]}` needs `complete`")
        if self.complete_windows is not None and self.complete_since is not None:
            self.complete_windows.first(self.complete_since)
        return self

    @property
    def complete_windows(self) -> TimeWindows | None:
        """The hours or days that are reported to Dagster; None if the settings ask for no report."""
        return TimeWindows.of(self.complete, self.time_zone or "UTC") if self.complete else None


class TopicOptions(BaseModel, frozen=True):
    """Settings that say how the records of topics become rows, and how the topics appear in Dagster.

    NAME is the name of a topic, or a regular expression that matches whole names. It is an expression if it has other
    characters than letters, digits, `.`, `_` and `-`. The first section that matches a topic applies to it.
    """

    format: TopicFormat = RAW_FORMAT
    audit: TopicAudit = TopicAudit()
    catalog: TopicCatalog = TopicCatalog()

    state: StateSettings | None = None
    """A second table with the newest row of each key. None by default."""

    tables: TopicTables | None = None
    """Further tables for records of other types. By default all records of the topic are in one table."""

    table_format: TableFormat | None = None
    """Format of the table, "delta" or "iceberg", instead of that of the cluster or of the file."""

    keep_days: Annotated[int, Field(ge=1, le=_MAX_KEEP_DAYS)] | None = None
    """Days that rows stay in the table. `penstock clean --delete` takes out whole files whose rows were all loaded
    longer ago; with `partition_by`, files of days that are longer ago. All rows stay by default. The files are deleted
    after `housekeeping.keep_days`. See docs/retention.md."""

    @model_validator(mode="after")
    def _checked_parts(self) -> Self:
        if self.format.event_time is None and self.audit.audit is not None:
            raise ValueError('`audit` needs an `event_time`: "timestamp", or the column by which producers count')
        if self.format.event_time is None and self.catalog.complete is not None:
            raise ValueError("`complete` needs `event_time`")
        problem = next(self.state.problems(self.format), None) if self.state else None
        if problem:
            raise ValueError(f"state.{problem}")
        if self.state is not None and self.keep_days is not None:
            raise ValueError(
                "`keep_days` and a state table exclude each other: a key whose newest row was retired would be lost "
                "when the state table is built again"
            )
        if self.tables is not None and self.audit.audit is not None:
            raise ValueError("`audit` and `tables` exclude each other: producers count the records of the whole topic")
        if self.tables is not None and self.tables.by_schema and not self.format.has_schemas:
            raise ValueError('tables.by: "schema" needs a `format` whose values have schemas in a registry')
        if (
            self.audit.audit is not None
            and self.keep_days is not None
            and self.keep_days * 24 <= self.audit.audit_hours
        ):
            raise ValueError(
                "`keep_days` must be longer than `audit_hours`: rows of the compared hours would be missing"
            )
        return self

    @property
    def rows_since(self) -> date | None:
        """The first day whose rows stay, in UTC; None if all rows stay."""
        return None if self.keep_days is None else datetime.now(UTC).date() - timedelta(days=self.keep_days)

    @property
    def unavailable_value(self) -> str:
        """What stands in cells of the table whose values a database did not send; empty if nothing does."""
        if self.state is None or self.state.unavailable_value is None:
            return UNAVAILABLE_VALUE if self.format.format == "debezium" else ""
        return self.state.unavailable_value

    def for_all_messages(self) -> Self:
        """The settings of a table whose records are chosen by their message types: it takes all that it gets."""
        return self.model_copy(update={"format": self.format.with_all_messages()})

    def for_counts(self) -> Self:
        """The settings of a topic that holds the counts of another one, and so is not audited itself."""
        return self.model_copy(update={"format": counts_format(self.format), "audit": TopicAudit()})


DEFAULT_TOPIC = TopicOptions()


def parts_of_topic(section: Any, info: ValidationInfo) -> Any:
    """The parts of a section `[topics.NAME]`, in which the keys of all parts stand side by side."""
    if not isinstance(section, dict):
        return section
    keys = dict(section)
    audit, catalog = taken(keys, TopicAudit), taken(keys, TopicCatalog)
    own = {name: keys.pop(name) for name in ("state", "tables", "keep_days", "table_format") if name in keys}
    return {
        # It refuses the keys that no part has.
        "format": TopicFormat.model_validate(keys, context=info.context),
        "audit": TopicAudit.model_validate(audit),
        "catalog": TopicCatalog.model_validate(catalog),
        **own,
    }
