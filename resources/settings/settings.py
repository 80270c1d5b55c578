"""`penstock.toml`: one settings file for the command line, Dagster and the demo.

Its path is the first of these that is given: the argument `path`, the environment variable PENSTOCK_SETTINGS,
`penstock.toml` in the working directory.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.brokers.retry import Backoff
from kafka_io.errors import LocatedError, NodeMalformed, system_reason
from kafka_io.model import Generation
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import FILE, PLAINTEXT, Sasl, Security, Tls
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from kafka_io.zookeeper.node_values import check_name
from resources.settings.catalog import CatalogSettings, catalog_section
from resources.settings.choices import Choices
from resources.settings.lineage import LineageSettings
from resources.settings.metrics import MetricsSettings
from resources.settings.rules.load_rules import HashSecret
from resources.settings.schedules import REST, CheckLimits, Cron, CronOrNever, ScheduleSettings, Timing, check_names
from resources.settings.section import (
    DATACLASS_SECTIONS,
    FOLDER,
    NO_SECTION,
    UNKNOWN_KEY,
    Section,
    absolute_path,
    first_problem,
    with_dotted_names,
    with_new_names,
    with_references,
)
from resources.settings.topic_formats import TopicFormat
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_sections import TopicRules, TopicSections, topics_of_file
from resources.suggestion import did_you_mean
from resources.table_formats import TableFormat, TableFormats

PATH_VARIABLE = "PENSTOCK_SETTINGS"
DEFAULT_PATH = "penstock.toml"
MIB = 1024 * 1024
# What precedes a path in the values of `[clusters.<name>.security]` and `[registries.<name>]`, by key.
_REFERENCES = (SecretReference, SecretReference | None)
_PATH_PREFIXES = {
    **{field.name: "" for section in (Tls, Sasl) for field in fields(section) if field.metadata == FILE},
    **{field.name: "file:" for section in DATACLASS_SECTIONS for field in fields(section) if field.type in _REFERENCES},
}


class SettingsError(LocatedError, ValueError):
    """The settings file is missing or wrong. The message names the file and the key."""


def _addresses(text: str) -> str:
    parse_bootstrap(text)
    return text


def _group(name: str) -> str:
    try:
        check_name("group", name)
    except NodeMalformed as error:
        raise ValueError(error.reason) from error
    return name


def _spark_settings(value: Any) -> Any:
    """Spark's settings as texts, with dotted names."""
    if not isinstance(value, dict):
        return value
    return {
        key: str(setting).lower() if isinstance(setting, int | float) else setting
        for key, setting in with_dotted_names(value).items()
    }


def _prepared_section(section: Any, info: ValidationInfo) -> Any:
    """The section and those in it with absolute paths. `tls = true` is an empty section, and `tls = false` is none."""
    if not isinstance(section, dict):
        return section
    return {
        key: ({} if value else None)
        if key == "tls" and isinstance(value, bool)
        else _absolute(_prepared_section(value, info), _PATH_PREFIXES.get(key), info)
        for key, value in section.items()
    }


def _absolute(text: Any, prefix: str | None, info: ValidationInfo) -> Any:
    """A value with an absolute path after `prefix`. Values without a path are not changed."""
    if prefix is None or not isinstance(text, str) or not text.startswith(prefix) or text == prefix:
        return text
    # Symbolic links stay unresolved: mounted secrets are links that are redirected when the secret is renewed.
    return f"{prefix}{absolute_path(text.removeprefix(prefix), info)}"


_MAX_SIZE = 10**15  # bytes or records: more than any disk or log has
_MAX_COUNT = 100_000
_HOUR_S = 3600.0
MAX_DAYS = 36_500.0
"""The longest time in days that settings and options take: a century."""
Size = Annotated[int, Field(gt=0, le=_MAX_SIZE)]
Count = Annotated[int, Field(gt=0, le=_MAX_COUNT)]
Seconds = Annotated[float, Field(gt=0, le=_HOUR_S, allow_inf_nan=False)]
Start = Literal["earliest", "latest"]


class ClusterSettings(Section):
    """One Kafka cluster and its addresses."""

    zookeeper: str | None = Field(default=None, min_length=1)
    """`host:port[,host:port][/chroot]` of the cluster's ZooKeeper, for Kafka 0.7 to 3.x with ZooKeeper. If `bootstrap`
    is set too, ZooKeeper lists the topics and the bootstrap servers list the brokers."""

    bootstrap: Annotated[str, AfterValidator(_addresses)] | None = None
    """`host:port[,host:port]` of the bootstrap servers, for Kafka 0.8 and later. `zookeeper` is not needed then. An
    IPv6 address has brackets, also with a zone: `[fe80::1%eth0]:9092`."""

    security: Annotated[Security, BeforeValidator(_prepared_section)] = PLAINTEXT
    """TLS and SASL. By default connections are plain text without authentication."""

    generation: Generation | None = None
    """Protocol generation of the brokers. By default it is detected. Setting it saves four seconds for each broker
    of 0.9. Remove it before you upgrade the brokers."""

    isolation: Literal["committed", "uncommitted"] = "committed"
    """Isolation level. "uncommitted" also loads records of open and aborted transactions."""

    rack: str = ""
    """Rack of the workers. Brokers from 2.4 on can then name a closer replica to read from."""

    table_format: TableFormat | None = None
    """Format of the tables of this cluster, instead of that of the file."""

    topics: TopicRules | None = None
    """Rules for this cluster, instead of those of the file."""

    start: Start | None = None
    """Where a topic without a table begins, for this cluster, instead of the value of the file."""

    choices: Choices | None = None
    """Choices for this cluster, instead of all choices of the file."""

    mirror_group: Annotated[str, AfterValidator(_group)] | None = None
    """A consumer group to which every load commits its cursors, for tools that monitor lag. None by default. No
    table continues at these offsets. Up to 0.9 they are stored in ZooKeeper, if `zookeeper` is set; otherwise the
    group's coordinator stores them. Use a group without members, because a group accepts offsets only from its members
    if it has any."""

    retention_hours: Annotated[float, Field(gt=0, le=24 * MAX_DAYS, allow_inf_nan=False)] | None = None
    """Hours that the brokers keep records, for brokers that do not report it. Brokers of 0.7 never report it, and later
    brokers before 0.11 only for topics with their own retention. The check `retention_race` needs this value."""

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.zookeeper is None and self.bootstrap is None:
            raise ValueError("set `zookeeper` or `bootstrap`")
        if self.generation is Generation.V07 and self.zookeeper is None:
            raise ValueError("set `zookeeper`: a cluster of generation 0.7 can only be reached through ZooKeeper")
        return self


class Caps(Section):
    """Limits of runs, tasks and requests.

    Sizes are bytes of the broker's log. An offset counts one byte of the log in 0.7 and one record in later versions.
    """

    bytes_per_run: Size | None = None
    """Kafka 0.7: maximum bytes of a topic's log that a run loads. Each partition has a share of them, and is loaded to
    the end of the message that reaches its share. Unlimited by default."""

    slice_bytes: Size = 256 * MIB
    """Kafka 0.7: bytes of the log that one task loads, cut at the starts of segments."""

    records_per_run: Size | None = None
    """Kafka 0.8 and later: maximum offsets of a topic that a run loads, kept exactly. Unlimited by default."""

    slice_records: Size = 2_000_000
    """Kafka 0.8 and later: offsets that one task loads."""

    slice_decoded_bytes: Size = 1024 * MIB
    """Kafka 0.8 and later: decoded bytes that one task loads, so topics with large records get smaller tasks. The size
    of a record is taken from the table's newest commit, or from the first records."""

    driver_slices: Count = 4
    """Full slices that the process of a load fetches itself; a larger load uses Spark. To start Spark and its workers
    takes longer than to fetch four slices of the default size. 300 small slices count as a full one."""

    fetch_bytes: Size = 4 * MIB
    """Bytes of the first fetch request for a partition. The size is doubled for a larger message or batch."""

    max_fetch_bytes: Annotated[int, Field(gt=0, le=1900 * MIB)] = 128 * MIB
    """Maximum bytes of a fetch request for a partition: the largest message or batch that can be loaded."""

    max_decompressed_bytes: Annotated[int, Field(gt=0, le=1900 * MIB)] = 256 * MIB
    """Maximum bytes of a message or batch after decompression."""

    max_bytes_per_s: Size | None = None
    """Maximum bytes of records that a command or a run fetches per second, from all brokers together. With this limit
    or the next one, topics are fetched one at a time, and Spark tasks that run at the same time divide it equally.
    Unlimited by default."""

    max_broker_bytes_per_s: Size | None = None
    """The same for each broker. Unlimited by default. Quotas that brokers set are obeyed in any case."""

    request_timeout_s: Seconds = 30.0
    """Seconds until a broker must have answered a request completely."""

    attempts: Count = Backoff().attempts
    """How often a request is sent, with growing waits between attempts, before the partition fails. 12 attempts wait
    for 27 seconds in all. By default the election of a leader takes less time. Until a server has answered once, no
    attempt begins more than 60 seconds after the first one."""

    registry_wait_s: Annotated[float, Field(ge=0, le=_HOUR_S, allow_inf_nan=False)] = 10.0
    """Seconds that a load waits in all for ids of schemas that a registry does not know yet, for example because it
    copies another registry. After that the records with these ids do not decode, and `penstock redecode` decodes them
    later."""

    @property
    def limits_rate(self) -> bool:
        """Whether there is a limit for the bytes per second."""
        return self.max_bytes_per_s is not None or self.max_broker_bytes_per_s is not None


class HousekeepingSettings(Section):
    """Limits for `penstock clean`: the age of files that it deletes, the size of those that it merges, and its time."""

    keep_days: Annotated[float, Field(gt=0, le=MAX_DAYS, allow_inf_nan=False)] = 7.0
    """Days that `penstock clean` keeps files that no commit names, or that were removed from a table. Choose more days
    than the longest run takes, and at least as many as you may want to go back with `penstock rewind`."""

    erase_days: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = 7.0
    """Days after `penstock erase` or `penstock rewrite` until `penstock clean` deletes the files that still have the
    erased rows or the former values. Queries that read an earlier version have this time to end. See
    docs/privacy.md."""

    file_bytes: Size = 256 * MIB
    """Size in bytes up to which small files are merged."""

    cron: CronOrNever = "47 1 * * *"
    """Dagster: when the tables are cleaned; in UTC. With "never" no schedule does it."""


class Retries(Section):
    """Retries of a Dagster run after a temporary error, such as a broker that does not answer.

    Other errors fail the run at once.
    """

    most: Annotated[int, Field(ge=0, le=20)] = 3
    """Maximum number of retries."""

    wait_s: Seconds = 30.0
    """Seconds before the first retry. The wait doubles before each further retry."""


class Alerts(Section):
    """A command that runs when a Dagster run or a check fails."""

    command: tuple[str, ...] = ()
    """Program and arguments. The program receives the alert as JSON on its standard input. None by default."""


class Settings(Section):
    """The settings at the top of the file, before the first section."""

    lake: str = Field(min_length=1)
    """Folder or URI that contains the tables. A relative folder is relative to the settings file."""

    lake_options: Annotated[dict[str, str], BeforeValidator(with_references)] = Field(default={})
    """Options of the object store, passed to deltalake. A secret is a reference: `env:NAME`, `file:PATH` or
    `command:LINE`."""

    table_format: TableFormat = "delta"
    """Format of the tables: "delta", or "iceberg" with a `catalog`. It is chosen before the first load of a topic. See
    docs/iceberg.md."""

    catalog: Annotated[CatalogSettings, BeforeValidator(catalog_section)] = CatalogSettings()
    """The catalog of Iceberg tables: the text "sqlite", or a section."""

    parquet_codec: Literal["zstd", "snappy"] = "zstd"
    """Compression of the Parquet files. "snappy" needs less CPU; its files are almost twice as large."""

    clusters: dict[str, ClusterSettings] = Field(min_length=1)
    """The clusters, each under a name that you choose. The name is a folder of the lake and part of Dagster's names."""

    registries: dict[str, Annotated[SchemaRegistrySettings, BeforeValidator(_prepared_section)]] = Field(default={})
    """The schema registries, each under a name that you choose."""

    secrets: dict[str, HashSecret] = Field(default={})
    """The keys of hashes, each under a name that you choose."""

    topics: Annotated[TopicSections, BeforeValidator(topics_of_file)] = TopicSections()
    """Which topics are loaded, for clusters without rules of their own; and the formats of topics."""

    start: Start = "earliest"
    """Where a topic without a table begins."""

    choices: Choices = Choices()
    """What a load does when a log no longer fits its table."""

    caps: Caps = Caps()
    """Limits of runs, tasks and requests."""

    housekeeping: HousekeepingSettings = HousekeepingSettings()
    """What `penstock clean` deletes and merges."""

    cron: Cron = "*/15 * * * *"
    """When topics are loaded, for schedules without a `cron` of their own; in UTC."""

    watch_cron: Cron = "*/10 * * * *"
    """When the status of all topics is checked (lag, freshness, retention); in UTC."""

    verify_cron: Cron = "17 3 * * *"
    """When all tables are verified; in UTC."""

    topics_per_run: Count = 50
    """Maximum number of topics that one Dagster run loads."""

    webserver: str = "http://127.0.0.1:3000"
    """Address of Dagster's webserver. The sensor for new topics asks the webserver to load their assets, unless Dagster
    uses a code server, which the sensor reloads itself. If it is empty, the sensor asks nobody."""

    new_topics_per_tick: Count = 500
    """Maximum number of new topics that one tick of the sensor adds. The next tick adds the others."""

    schedules: dict[str, ScheduleSettings] = Field(default={})
    """Topics that are loaded at their own times, each under a name that you choose. A topic belongs to the first
    schedule that matches it, otherwise to the schedule `topics`."""

    limits: CheckLimits = CheckLimits()
    """Limits for the checks of tables, for schedules without limits of their own."""

    retries: Retries = Retries()
    """Retries of runs that failed with a temporary error."""

    alerts: Alerts = Alerts()
    """Alerts about failed runs and failed checks."""

    metrics: MetricsSettings = MetricsSettings()
    """Where each load writes its own metrics."""

    lineage: Annotated[LineageSettings, BeforeValidator(_prepared_section)] = LineageSettings()
    """Where each load sends OpenLineage events."""

    spark: Annotated[dict[str, str], BeforeValidator(_spark_settings)] = Field(default={})
    """`master`, or `remote` for Spark Connect, and any other Spark setting. The master is `local[*,4]` by default."""

    _warnings: tuple[str, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about old names of settings in the file."""
        return self._warnings

    @model_validator(mode="after")
    def _checked(self) -> Self:
        check_names("clusters", self.clusters)
        check_names("schedules", self.schedules)
        check_names("registries", self.registries)
        check_names("secrets", self.secrets)
        self._check_secrets()
        self._check_topics()
        if self.table_formats.has_iceberg and self.catalog.type == "sqlite" and "://" in self.lake:
            raise ValueError('catalog: Iceberg tables in an object store need `type = "sql"` or "rest"')
        if REST in self.schedules:
            raise ValueError(f"schedules.{REST}: this name is reserved for the topics of no other schedule")
        for name, schedule in self.schedules.items():
            for cluster in schedule.clusters or ():
                if cluster not in self.clusters:
                    raise ValueError(f"schedules.{name}.clusters: there is no cluster {cluster!r} in the settings")
        if "master" in self.spark and "remote" in self.spark:
            raise ValueError("spark: set `master` or `remote`, not both")
        if self.caps.fetch_bytes > self.caps.max_fetch_bytes:
            raise ValueError("caps.fetch_bytes is greater than caps.max_fetch_bytes")
        return self

    @property
    def table_formats(self) -> TableFormats:
        """The formats of the tables."""
        own = {name: cluster.table_format for name, cluster in self.clusters.items()}
        return TableFormats(
            of_lake=self.table_format,
            of_clusters={name: format_ for name, format_ in own.items() if format_},
            of_topics={name: options.table_format for name, options in self.topics.sections.items()},
        )

    def rules(self, cluster: str) -> TopicRules:
        """The topic rules of a cluster: its own, otherwise those of the file."""
        return self.clusters[cluster].topics or self.topics.rules

    def options_of(self, topic: str) -> TopicOptions:
        """The settings of a topic: those of the first section that matches it, otherwise the defaults."""
        options = self.topics.section_of(topic)
        format_ = options.format.with_registries(self.registries).with_secrets(self.secrets)
        return options.model_copy(update={"format": format_})

    def format_of(self, topic: str) -> TopicFormat:
        """The format of a topic, with the names of the registries that it needs."""
        return self.options_of(topic).format

    def _check_topics(self) -> None:
        """Check that each format with schemas has a registry, and that counts are loaded with what they audit."""
        for name, options in self.topics.sections.items():
            rules = map(self.rules, self.clusters)
            format_ = options.format
            problem = (
                self.topics.audit_problem(name, rules)
                or format_.registry_problem(self.registries)
                or format_.load.secret_problem(self.secrets)
            )
            if problem:
                raise ValueError(f"topics.{name}.{problem}")

    def _check_secrets(self) -> None:
        """Check that hashes of two keys begin with two ids."""
        by_id: dict[str, str] = {}
        for name, secret in self.secrets.items():
            if secret.id in by_id:
                raise ValueError(f"secrets.{name}.id: the secret {by_id[secret.id]!r} has the id {secret.id!r} too")
            by_id[secret.id] = name

    def start_of(self, cluster: str) -> Start:
        """Where a topic without a table begins."""
        return self.clusters[cluster].start or self.start

    def choices_of(self, cluster: str) -> Choices:
        """The choices of a cluster: its own, otherwise those of the file."""
        return self.clusters[cluster].choices or self.choices

    def with_short_timeout(self, *, attempts: int, timeout_s: float = inf) -> Self:
        """The same settings with at most this many attempts at a request, and at most this many seconds for each."""
        caps = self.caps
        smaller = {
            "attempts": min(attempts, caps.attempts),
            "request_timeout_s": min(timeout_s, caps.request_timeout_s),
        }
        return self.model_copy(update={"caps": caps.model_copy(update=smaller)})

    def schedules_of(self, cluster: str) -> list[str]:
        """The schedules that can have topics of a cluster, in the order of the file, with `topics` as the last."""
        return [*(name for name, schedule in self.schedules.items() if schedule.takes_cluster(cluster)), REST]

    def schedule_of(self, cluster: str, topic: str) -> str:
        """The schedule that a topic belongs to."""
        return next((name for name, schedule in self.schedules.items() if schedule.takes(cluster, topic)), REST)

    def timing_of(self, schedule: str) -> Timing:
        """The cron and the limits of a schedule: its own, otherwise those of the file."""
        own = self.schedules.get(schedule)
        return Timing(cron=(own and own.cron) or self.cron, limits=(own and own.limits) or self.limits)

    @classmethod
    def path(cls, path: str | Path | None = None) -> Path:
        """The absolute path of the settings file: `path`, or the default (see the top of this module)."""
        return Path(path or os.environ.get(PATH_VARIABLE) or DEFAULT_PATH).absolute()

    @classmethod
    def load(cls, path: str | Path | None = None) -> Self:
        """Read and check the file. Relative paths in it are relative to its folder.

        Raises:
            SettingsError: the file is missing or wrong.
        """
        file = cls.path(path)
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8-sig"))  # an editor may begin it with a mark (BOM)
        except FileNotFoundError:
            hint = f"give its path with --settings or the variable {PATH_VARIABLE}"
            raise SettingsError(f"there is no settings file {file}; {hint}") from None
        except OSError as error:
            raise SettingsError(f"{file} cannot be read: {system_reason(error)}") from error
        except tomllib.TOMLDecodeError as error:  # it names line and column
            raise SettingsError(f"{file} is not valid TOML: {error}") from error
        except UnicodeDecodeError as error:
            raise SettingsError(f"{file} is not UTF-8 text") from error
        except (ValueError, RecursionError) as error:
            raise SettingsError(
                f"{file} has a number that is too long, or lists in lists in too many levels"
            ) from error
        return cls.of(data, folder=file.parent, place=str(file))

    @classmethod
    def of(cls, data: Mapping[str, Any], *, folder: Path, place: str = "the settings") -> Self:
        """Check the content of a settings file. Relative paths in it are relative to `folder`.

        Raises:
            SettingsError: a setting is missing or wrong. The message names its key and `place`.
        """
        try:
            renamed, warnings = with_new_names(data)
            settings = cls.model_validate(renamed, context={FOLDER: folder})
        except ValidationError as error:
            raise SettingsError(f"{place}: {_sentence(error)}") from error
        except ValueError as error:
            raise SettingsError(f"{place}: {error}") from error
        settings._warnings = warnings  # noqa: SLF001 - it is this class
        if "://" in settings.lake:
            return settings
        return settings.model_copy(update={"lake": str((folder / Path(settings.lake).expanduser()).resolve())})


def _belonging(name: str) -> str:
    """The end of a sentence about a key in the wrong section: the sections that have it (fault F06)."""
    from resources.settings.settings_reference import sections  # noqa: PLC0415 - only an error needs it

    pages = [page for page in sections(Settings) if any(key.name == name for key in page.keys)]
    places = [f"[{place}]" if place else "the top of the file" for page in pages for place in page.places]
    return f" of this section; it belongs to {' or '.join(places)}" if places else ""


def _sentence(error: ValidationError) -> str:
    """The sentence about the first problem, with its key. A sentence of our own checks follows the key and a colon."""
    key, name, phrase = first_problem(error)
    known = {field for section in Section.__subclasses__() for field in section.model_fields}
    known |= {field.name for section in DATACLASS_SECTIONS for field in fields(section)}
    # A value where the name of a topic would be a section is an unknown key.
    if phrase == UNKNOWN_KEY or (phrase == NO_SECTION and name not in known):
        return f"{key} {UNKNOWN_KEY}{_belonging(name) if name in known else did_you_mean(name, sorted(known))}"
    if phrase.startswith(("is ", "must ")):
        return f"{key} {phrase}"
    # The checks of kafka_io name their section, which is the end of the key here.
    return f"{key}: {phrase.removeprefix(f'{name}: ')}".removeprefix(": ")
