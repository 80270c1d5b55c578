"""`penstock.toml`: one file that the command line, Dagster and the demo read alike.

Its path is the first of: an argument, the environment's PENSTOCK_SETTINGS, `penstock.toml` in the working directory.
"""

import os
import tomllib
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from kafka_io.client.modern.bootstrap import parse_bootstrap
from kafka_io.errors import NodeMalformed
from kafka_io.model import Generation
from kafka_io.registry.consumers import check_group_name
from resources.choices import Choices
from resources.groups import REST, Group, Limits, Patterns, Timing, check_names, matches
from resources.secrets import FOLDER
from resources.section import Section
from resources.security_settings import SecuritySettings

PATH_VARIABLE = "PENSTOCK_SETTINGS"
DEFAULT_PATH = "penstock.toml"
MIB = 1024 * 1024


class SettingsError(ValueError):
    """The settings file is missing or wrong; the sentence names the file and the key."""


def _addresses(text: str) -> str:
    parse_bootstrap(text)
    return text


def _group(name: str) -> str:
    try:
        check_group_name(name)
    except NodeMalformed as error:
        raise ValueError(error.reason) from error
    return name


Size = Annotated[int, Field(gt=0)]
Start = Literal["earliest", "latest"]
_OF_READING = {"fetch_bytes", "max_fetch_bytes", "max_decompressed_bytes", "request_timeout_s", "attempts"}


class TopicRules(Section):
    """Which topics are loaded: those that an `allow` pattern matches whole and no `deny` pattern does."""

    allow: Patterns = (".*",)
    """Regular expressions that match whole names. An empty one matches nothing."""

    deny: Patterns = ()
    """The same; deny wins over allow."""

    def allows(self, topic: str) -> bool:
        """Whether `topic` is loaded. Deny wins; an empty entry matches nothing."""
        return matches(self.allow, topic) and not matches(self.deny, topic)


class ClusterSettings(Section):
    """One Kafka cluster and how it is found."""

    zookeeper: str | None = Field(default=None, min_length=1)
    """`host:port[,host:port][/chroot]` of the ZooKeeper that holds its registry: any Kafka of 0.7 to 3.x that has one.
    With `bootstrap` as well, topics come from here and brokers are found there."""

    bootstrap: Annotated[str, AfterValidator(_addresses)] | None = None
    """`host:port[,host:port]` of brokers that are asked first; from 0.8 on. It is enough without a ZooKeeper."""

    security: SecuritySettings = SecuritySettings()
    """TLS and SASL; plain text by default."""

    generation: Generation | None = None
    """What its brokers speak. It is found out by asking; pinning it saves two seconds for each connection to a 0.9."""

    isolation: Literal["committed", "uncommitted"] = "committed"
    """Whether also records are loaded that transactions have not committed, or have aborted."""

    rack: str = ""
    """Where the workers are: brokers from 2.4 on may name a replica near by to read from."""

    topics: TopicRules | None = None
    """Its own rules, in the place of the file's."""

    start: Start | None = None
    """Its own start, in the place of the file's."""

    choices: Choices | None = None
    """Its own choices, in the place of all of the file's."""

    mirror_group: Annotated[str, AfterValidator(_group)] | None = None
    """A consumer group to which every load tells its cursors, for tools that watch lag; none by default. Nothing reads
    it back. Up to 0.9 it is in ZooKeeper, if the cluster is found through it; else its coordinator keeps it. It is for
    this alone: a group with members refuses offsets of others."""

    retention_hours: Annotated[float, Field(gt=0)] | None = None
    """Hours that its brokers keep records, where they do not tell: those of 0.7 never do, those before 0.11 only of
    topics with a retention of their own. The check `retention_race` needs to know."""

    @model_validator(mode="after")
    def _is_found_somehow(self) -> Self:
        if self.zookeeper is None and self.bootstrap is None:
            raise ValueError("needs `zookeeper` or `bootstrap`")
        if self.generation is Generation.V07 and self.zookeeper is None:
            raise ValueError("needs `zookeeper`: clusters of 0.7 are found through it")
        return self


class Caps(Section):
    """Bounds of a run. Sizes are bytes of the broker's log. Offsets count such bytes in 0.7, and records later."""

    bytes_per_run: Size | None = None
    """Of 0.7: the most that a run loads of a topic, in bytes of its log. No bound by default."""

    slice_bytes: Size = 256 * MIB
    """Of 0.7: one task's share in bytes, cut at the starts of segments. A load of no more than that needs no Spark."""

    records_per_run: Size | None = None
    """From 0.8 on: the most that a run loads of a topic, in offsets. No bound by default."""

    slice_records: Size = 2_000_000
    """From 0.8 on: one task's share in offsets. A load of no more than that needs no Spark."""

    slice_decoded_bytes: Size = 1024 * MIB
    """From 0.8 on: the same in bytes of decoded columns, as the table's newest commit or a look at the first records
    has them: large records make smaller shares."""

    fetch_bytes: Size = 4 * MIB
    """Bytes of a partition that are asked for at first. A message or batch that is larger doubles it."""

    max_fetch_bytes: Annotated[int, Field(gt=0, le=1900 * MIB)] = 128 * MIB
    """Bytes up to which it is doubled: the largest message or batch that can be loaded."""

    max_decompressed_bytes: Annotated[int, Field(gt=0, le=1900 * MIB)] = 256 * MIB
    """The most bytes that a message or batch may become when it is decompressed."""

    request_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds that a broker has to answer a request in full."""

    attempts: Size = 6
    """How often a request is made, with growing waits between, before a partition fails."""

    @property
    def of_reading(self) -> dict[str, Any]:
        """Those that bound a reader (`kafka_io.client.reading.Reading.of`)."""
        return self.model_dump(include=_OF_READING)


class Housekeeping(Section):
    """What `penstock clean` keeps, and makes."""

    keep_days: Annotated[float, Field(gt=0)] = 7.0
    """Days that files are kept which no commit names, or which were taken out of a table: longer than the longest run,
    and as far back as you want to rewind."""

    file_bytes: Size = 256 * MIB
    """Bytes up to which small files are merged."""


class Retries(Section):
    """How often a run tries again what may pass, such as a broker that does not answer; other errors end it at once."""

    most: Annotated[int, Field(ge=0)] = 3
    """How often, after the first time."""

    wait_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds before the first; twice as long before each that follows."""


class Alerts(Section):
    """Whom to tell of runs that fail and checks that do not pass."""

    command: tuple[str, ...] = ()
    """Program and arguments. It reads what happened, as JSON, from its standard input. None by default."""


class Settings(Section):
    """The whole file."""

    lake: str = Field(min_length=1)
    """The folder or URI under which the tables are. A folder is relative to this file."""

    lake_options: dict[str, str] = Field(default={})
    """What an object store needs; passed to deltalake as it is. Secrets belong into the environment instead."""

    parquet_codec: Literal["zstd", "snappy"] = "zstd"
    """How files are compressed. "snappy" takes less CPU, and files are almost twice as large."""

    clusters: dict[str, ClusterSettings] = Field(min_length=1)
    """Each cluster by a name of your own, which is a folder of the lake and part of the names in Dagster."""

    topics: TopicRules = TopicRules()
    """Which topics are loaded, of clusters without rules of their own."""

    start: Start = "earliest"
    """Where a topic without a table begins."""

    choices: Choices = Choices()
    """What loads do where a log and its table part."""

    caps: Caps = Caps()
    """Bounds of runs, tasks and requests."""

    housekeeping: Housekeeping = Housekeeping()
    """What `penstock clean` keeps and merges."""

    cron: str = "*/15 * * * *"
    """When topics are loaded, of groups without a cron of their own; in UTC."""

    watch_cron: str = "*/10 * * * *"
    """When topics are looked at: lag, freshness, the race with retention; in UTC."""

    verify_cron: str = "17 3 * * *"
    """When all tables are verified; in UTC."""

    topics_per_run: Size = 50
    """The most topics that one run of Dagster loads."""

    new_topics_per_tick: Size = 500
    """The most new topics that one tick of the sensor takes up; the next tick goes on."""

    groups: dict[str, Group] = Field(default={})
    """Topics with a schedule of their own. The first group that matches a topic takes it; the rest are in `topics`."""

    limits: Limits = Limits()
    """What the checks hold tables to, of groups without limits of their own."""

    retries: Retries = Retries()
    """Of runs that failed with what may pass."""

    alerts: Alerts = Alerts()
    """Whom to tell."""

    spark: dict[str, str] = Field(default={})
    """`master`, or `remote` for Spark Connect, and any setting of Spark. `local[*,4]` by default."""

    @model_validator(mode="before")
    @classmethod
    def _spark_values_are_text(cls, data: Any) -> Any:
        spark = data.get("spark") if isinstance(data, dict) else None
        if isinstance(spark, dict):
            data = {**data, "spark": {key: _spark_text(value) for key, value in _flat(spark).items()}}
        return data

    @model_validator(mode="after")
    def _checked(self) -> Self:
        check_names("clusters", self.clusters)
        check_names("groups", self.groups)
        if REST in self.groups:
            raise ValueError(f"groups.{REST}: that is the group of the topics that no other group takes")
        for name, group in self.groups.items():
            for cluster in group.clusters or ():
                if cluster not in self.clusters:
                    raise ValueError(f"groups.{name}.clusters: there is no cluster {cluster!r}")
        if "master" in self.spark and "remote" in self.spark:
            raise ValueError("spark: `master` and `remote` exclude each other")
        if self.caps.fetch_bytes > self.caps.max_fetch_bytes:
            raise ValueError("caps.fetch_bytes is above caps.max_fetch_bytes")
        return self

    def rules(self, cluster: str) -> TopicRules:
        """The topic rules of a cluster: its own, else the file's."""
        return self.clusters[cluster].topics or self.topics

    def start_of(self, cluster: str) -> Start:
        """Where a topic without a table starts."""
        return self.clusters[cluster].start or self.start

    def choices_of(self, cluster: str) -> Choices:
        """What loads do where a log and a table have parted: the cluster's own choices, else the file's."""
        return self.clusters[cluster].choices or self.choices

    def hasty(self, *, attempts: int, timeout_s: float = inf) -> Self:
        """The same, with no more than so many attempts at a request, and so many seconds for each."""
        caps = self.caps
        less = {"attempts": min(attempts, caps.attempts), "request_timeout_s": min(timeout_s, caps.request_timeout_s)}
        return self.model_copy(update={"caps": caps.model_copy(update=less)})

    def groups_of(self, cluster: str) -> list[str]:
        """The groups that may have topics of a cluster, in the order of the file; the rest is the last."""
        return [*(name for name, group in self.groups.items() if group.of_cluster(cluster)), REST]

    def group_of(self, cluster: str, topic: str) -> str:
        """The group of a topic."""
        return next((name for name, group in self.groups.items() if group.takes(cluster, topic)), REST)

    def timing_of(self, group: str) -> Timing:
        """When the topics of a group are loaded, and what they are held to: its own, else the file's."""
        own = self.groups.get(group)
        return Timing(cron=(own and own.cron) or self.cron, limits=(own and own.limits) or self.limits)

    @classmethod
    def path(cls, path: str | Path | None = None) -> Path:
        """Where the file is: at `path`, else where the environment says, else in the working directory."""
        return Path(path or os.environ.get(PATH_VARIABLE) or DEFAULT_PATH).absolute()

    @classmethod
    def load(cls, path: str | Path | None = None) -> Self:
        """Read and check the file; relative paths are relative to the file's folder.

        Raises:
            SettingsError: naming the file and the key.
        """
        file = cls.path(path)
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            hint = f"give its path with --settings or {PATH_VARIABLE}"
            raise SettingsError(f"there is no settings file {file} ({hint})") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{file}: {error}") from error
        try:
            settings = cls.model_validate(data, context={FOLDER: file.parent})
        except ValidationError as error:
            raise SettingsError(f"{file}: {_first_problem(error)}") from error
        return settings.model_copy(update={"lake": _resolved(settings.lake, file.parent)})


def _resolved(lake: str, folder: Path) -> str:
    return lake if "://" in lake else str((folder / Path(lake).expanduser()).resolve())


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """TOML reads `spark.driver.memory = "2g"` as nested tables: back to dotted names."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _spark_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    reason = str(problem["msg"]).removeprefix("Value error, ")
    known = {"missing": "is missing", "extra_forbidden": "is not a setting"}
    return f"{key} {known[problem['type']]}" if problem["type"] in known else f"{key}: {reason}".removeprefix(": ")
