"""`penstock.toml`: one file that the command line, Dagster and the demo read alike.

Its path is the first of: an argument, the environment's PENSTOCK_SETTINGS, `penstock.toml` in the working directory.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from kafka_io.client.modern.bootstrap import parse_bootstrap
from kafka_io.model import Generation
from resources.choices import Choices
from resources.secrets import FOLDER
from resources.section import Section
from resources.security_settings import SecuritySettings

PATH_VARIABLE = "PENSTOCK_SETTINGS"
DEFAULT_PATH = "penstock.toml"
_CLUSTER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
MIB = 1024 * 1024


class SettingsError(ValueError):
    """The settings file is missing or wrong; the sentence names the file and the key."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


def _addresses(text: str) -> str:
    parse_bootstrap(text)
    return text


Patterns = Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], BeforeValidator(_listed)]
Size = Annotated[int, Field(gt=0)]
Start = Literal["earliest", "latest"]
_OF_READING = {"fetch_bytes", "max_fetch_bytes", "max_decompressed_bytes", "request_timeout_s", "attempts"}


class TopicRules(Section):
    """Which topics are loaded: those that an `allow` pattern matches whole and no `deny` pattern does."""

    allow: Patterns = (".*",)
    deny: Patterns = ()

    def allows(self, topic: str) -> bool:
        """Whether `topic` is loaded. Deny wins; an empty entry matches nothing."""
        return _matches(self.allow, topic) and not _matches(self.deny, topic)


def _matches(patterns: tuple[str, ...], topic: str) -> bool:
    return any(pattern and re.fullmatch(pattern, topic, re.DOTALL) for pattern in patterns)


class ClusterSettings(Section):
    """One Kafka cluster and how it is found."""

    zookeeper: str | None = Field(default=None, min_length=1)
    bootstrap: Annotated[str, AfterValidator(_addresses)] | None = None
    security: SecuritySettings = SecuritySettings()
    generation: Generation | None = None  # found out, unless it is pinned
    isolation: Literal["committed", "uncommitted"] = "committed"
    rack: str = ""  # where the workers are: brokers may name a replica near by
    topics: TopicRules | None = None
    start: Start | None = None
    choices: Choices | None = None

    @model_validator(mode="after")
    def _is_found_somehow(self) -> Self:
        if self.zookeeper is None and self.bootstrap is None:
            raise ValueError("needs `zookeeper` or `bootstrap`")
        if self.generation is Generation.V07 and self.zookeeper is None:
            raise ValueError("needs `zookeeper`: clusters of 0.7 are found through it")
        return self


class Caps(Section):
    """Bounds of a run. Sizes are bytes of the broker's log. Offsets count such bytes in 0.7, and records later."""

    bytes_per_run: Size | None = None  # of 0.7
    slice_bytes: Size = 256 * MIB  # of 0.7
    records_per_run: Size | None = None  # from 0.8 on
    slice_records: Size = 2_000_000  # from 0.8 on
    fetch_bytes: Size = 4 * MIB
    max_fetch_bytes: Annotated[int, Field(gt=0, le=1900 * MIB)] = 128 * MIB
    max_decompressed_bytes: Annotated[int, Field(gt=0, le=1900 * MIB)] = 256 * MIB  # a batch stays below 2 GiB
    request_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    attempts: Size = 6

    @property
    def of_reading(self) -> dict[str, Any]:
        """Those that bound a reader (`kafka_io.client.reading.Reading.of`)."""
        return self.model_dump(include=_OF_READING)


class Housekeeping(Section):
    """What `penstock clean` keeps, and makes."""

    keep_days: Annotated[float, Field(gt=0)] = 7.0  # files that no commit names, or that were taken out of a table
    file_bytes: Size = 256 * MIB  # small files are merged up to this


class Settings(Section):
    """The whole file."""

    lake: str = Field(min_length=1)
    lake_options: dict[str, str] = Field(default={})
    parquet_codec: Literal["zstd", "snappy"] = "zstd"
    clusters: dict[str, ClusterSettings] = Field(min_length=1)
    topics: TopicRules = TopicRules()
    start: Start = "earliest"
    choices: Choices = Choices()
    caps: Caps = Caps()
    housekeeping: Housekeeping = Housekeeping()
    spark: dict[str, str] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _spark_values_are_text(cls, data: Any) -> Any:
        spark = data.get("spark") if isinstance(data, dict) else None
        if isinstance(spark, dict):
            data = {**data, "spark": {key: _spark_text(value) for key, value in _flat(spark).items()}}
        return data

    @model_validator(mode="after")
    def _checked(self) -> Self:
        for name in self.clusters:
            if not _CLUSTER_NAME.fullmatch(name):
                raise ValueError(f"clusters.{name}: a cluster's name has small letters, digits, - and _ only")
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

    @classmethod
    def load(cls, path: str | Path | None = None) -> Self:
        """Read and check the file; relative paths are relative to the file's folder.

        Raises:
            SettingsError: naming the file and the key.
        """
        file = Path(path or os.environ.get(PATH_VARIABLE) or DEFAULT_PATH).absolute()
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
