"""The cases of the bench: one topic each."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from tests.bench import loaders as by

PARTITIONS = 4
PARQUET_CODEC: Literal["snappy"] = "snappy"
"""The codec of all loaders' files: the faster of the two that Penstock offers, so that loading dominates."""

_IN_SPARK = (by.OURS_IN_SPARK, by.SPARK)
_EVERYONE = (by.OURS, by.CONFLUENT, by.KAFKARROW, by.AIOKAFKA, by.KAFKA_PYTHON, *_IN_SPARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A topic with `records` values of about `value_bytes`, produced with `codec`, and its loaders in their order.

    Each record has a key of 9 bytes, and one header with a key of 5 and a value of 8 bytes.

    Args:
        like: the case whose topic is loaded; None if this case has its own topic.
        warm_up: the case whose topic Spark sessions load before the clock starts; None for this case's topic.
        partitions: the number of the topic's partitions, which all have the same number of records.
        format: the format of the values. Avro values are orders of orders.py; their schema is in a registry.
        steady: whether nearly all time is spent per record, so that the table shows costs per record.
    """

    name: str
    title: str
    records: int
    value_bytes: int
    codec: str
    loaders: Sequence[str]
    partitions: int = PARTITIONS
    format: Literal["json", "avro"] = "json"
    like: Self | None = None
    warm_up: Self | None = None
    steady: bool = True

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.like.name if self.like else self.name

    @property
    def compares_limit(self) -> bool:
        """Whether the case also compares ours with the limit (see limit.py)."""
        is_usual = self.like is None and self.format == "json" and self.partitions == PARTITIONS
        return is_usual and by.OURS in self.loaders


def _of_200_bytes(codec: str, title: str, loaders: Sequence[str]) -> Case:
    return Case(name=codec, title=title, records=2_000_000, value_bytes=200, codec=codec, loaders=loaders)


# kafkarrow's wheel has no zstd.
ZSTD = _of_200_bytes("zstd", "200 B, zstd", [name for name in _EVERYONE if name != by.KAFKARROW])
NONE = _of_200_bytes("none", "200 B, no codec", _EVERYONE)
LZ4 = _of_200_bytes("lz4", "200 B, lz4", _EVERYONE)
SNAPPY = _of_200_bytes("snappy", "200 B, snappy", _EVERYONE)
GZIP = _of_200_bytes("gzip", "200 B, gzip", _EVERYONE)
SMALL = Case(name="small", title="20 B, no codec", records=4_000_000, value_bytes=20, codec="none", loaders=_EVERYONE)
LARGE = Case(name="large", title="10 kB, no codec", records=60_000, value_bytes=10_000, codec="none", loaders=_EVERYONE)
MANY = Case(
    name="many",
    title="200 B, no codec, 10 M records",
    records=10_000_000,
    value_bytes=200,
    codec="none",
    loaders=_IN_SPARK,
    warm_up=NONE,
)
SPREAD = Case(
    name="spread",
    title="200 B, zstd, 1,000 partitions x 1,000 records",
    records=1_000_000,
    partitions=1_000,
    value_bytes=200,
    codec="zstd",
    loaders=(by.OURS, *_IN_SPARK),
)
COLD = Case(
    name="cold",
    title="cold job, 200 B, zstd",
    records=ZSTD.records,
    value_bytes=ZSTD.value_bytes,
    codec=ZSTD.codec,
    loaders=(by.COLD_EMPTY, by.COLD_OURS, by.COLD_OURS_FIRST, by.COLD_OURS_SPREAD, by.COLD_SPARK),
    like=ZSTD,
    steady=False,
)
JSON = Case(
    name="json",
    title="200 B, zstd, JSON to columns",
    records=ZSTD.records,
    value_bytes=ZSTD.value_bytes,
    codec=ZSTD.codec,
    loaders=(by.OURS, by.OURS_TYPED, by.SPARK_TYPED),
    like=ZSTD,
)
AVRO = Case(
    name="avro",
    title="200 B, zstd, Avro to columns",
    records=1_000_000,
    value_bytes=200,
    codec="zstd",
    loaders=(by.OURS, by.OURS_AVRO, by.CONFLUENT_AVRO, by.SPARK_AVRO),
    format="avro",
)
FIRST = Case(
    name="first",
    title="first task, 1000 records",
    records=1_000,
    value_bytes=200,
    codec="zstd",
    loaders=(by.FIRST_TASK, by.FIRST_TASK_EVER),
    steady=False,
)
ALL = (ZSTD, NONE, LZ4, SNAPPY, GZIP, SMALL, LARGE, MANY, SPREAD, JSON, AVRO, COLD, FIRST)
QUICK = (ZSTD,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The task of one process: load `topic` into the empty `folder`. Before the clock starts, load `warm_up`.

    `jars` are the jars of Spark's own Kafka source, separated by commas. `registry` is the URL of the registry with the
    schemas of Avro values; None if the values are JSON.
    """

    bootstrap: str
    topic: str
    records: int
    folder: Path
    warm_up: str
    jars: str
    registry: str | None = None

    def warming(self) -> Self:
        """The same load into another folder, to run first: a first load also pays for imports and new memory."""
        folder = self.folder.with_name("warm-up")
        folder.mkdir()
        return replace(self, folder=folder)

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {**asdict(self), "folder": str(self.folder)}

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """The job whose `as_dict` gave these fields."""
        return cls(**{**fields, "folder": Path(fields["folder"])})
