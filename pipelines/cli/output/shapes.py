"""The shapes of `--json`: one object for every command and every end. docs/output.schema.json is made from these types.

Later versions can add fields. They do not remove fields or change their meaning without a note in the changelog.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, Field, TypeAdapter

from pipelines.cli.output.shape import PrintedError, Shape
from pipelines.cli.output.status_shapes import CompletedTable, ShownTopic
from resources.explanations.explanation import ExitCode

NameT = TypeVar("NameT")
ResultsT = TypeVar("ResultsT")
Gaps = dict[str, int]


class Output(BaseModel, Generic[NameT, ResultsT]):
    """The one object that a command prints.

    Its descriptions are no docstrings: pydantic would search for the source of each type that is made from this one.
    """

    command: NameT = Field(description="The name of the command; empty if the command line names none.")
    exit_code: int = Field(description="; ".join(f"{code}: {code.meaning}" for code in ExitCode) + ".")
    errors: list[PrintedError] = Field(description="All errors of the command, including those of its results.")
    results: ResultsT

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """The name of the type in the schema, such as `OutputOfLoad`."""
        commands = " ".join(name for name in get_args(params[0]) if name)
        return f"{cls.__name__}Of{commands.title().replace(' ', '')}"


class PrintedRange(Shape):
    """Offsets `[start, end)` of a partition; `broker` is null from Kafka 0.8 on."""

    broker: int | None
    partition: int
    start: int
    end: int


class LoadedPartition(PrintedRange):
    """The part of a partition that a load committed."""

    rows: int
    bytes: int
    files: int
    gaps: Gaps
    """The number of offsets without a row, by cause."""
    odd_times: int
    """The number of rows with a time that only the column `timestampRaw` can hold."""
    bad_records: int
    """The number of rows whose value does not decode; 0 in a raw table."""
    lag_before: int | None
    """Null if the broker did not report the end of the log."""
    lag: int | None
    """Null in the same case."""
    seconds: float
    source: str


class SlowestSlice(Shape):
    """The slice of a load that took the longest."""

    broker: int | None
    partition: int
    start: int
    stop: int
    rows: int
    seconds: float


class LoadedTopic(Shape):
    """A result of `penstock load`."""

    cluster: str
    topic: str
    table: str
    version: int | None
    rows: int
    bytes: int
    files: int
    bad_records: int
    lag_before: int | None
    """Null if it is unknown for a partition."""
    lag: int | None
    """Null in the same case."""
    seconds: float
    rows_per_second: float
    bytes_per_second: float
    slowest: SlowestSlice | None
    warnings: list[str]
    errors: list[PrintedError]
    partitions: list[LoadedPartition]


class ComparedRows(Shape):
    """The differences between the rows of a table and the records of the brokers."""

    equal: int
    differing: int
    only_in_table: int
    only_on_broker: int
    copies: int
    offsets: dict[str, list[int]]
    """The first offsets of each kind of difference."""


class ReplayedPartition(PrintedRange, ComparedRows):
    """The part of a partition that was fetched again."""

    rows: int
    gaps: Gaps


class ReplayedTopic(Shape):
    """A result of `penstock replay`."""

    cluster: str
    topic: str
    table: str
    version: int | None
    changed: bool
    rows: int
    seconds: float
    errors: list[PrintedError]
    partitions: list[ReplayedPartition]


class PrintedReason(Shape):
    """Why records do not decode, and how many."""

    reason: str
    records: int


class RedecodedTopic(Shape):
    """A result of `penstock redecode`; `columns` are those that the table got."""

    cluster: str
    topic: str
    table: str
    version: int | None
    dry_run: bool
    decoded: int
    bad_records: int
    columns: list[str]
    warnings: list[str]
    seconds: float
    reasons: list[PrintedReason]
    errors: list[PrintedError]


class VerifiedPartition(PrintedRange):
    """The part of a partition that the table holds, for one incarnation of the topic."""

    incarnation: str
    rows: int
    gaps: Gaps
    missing: int
    duplicates: int


class ComparedPartition(PrintedRange, ComparedRows):
    """A partition that was compared with its broker."""

    not_compared: int


class VerifiedTable(Shape):
    """A result of `penstock verify`."""

    cluster: str
    topic: str
    table: str
    proven: bool
    problems: list[str]
    errors: list[PrintedError]
    partitions: list[VerifiedPartition]
    compared: list[ComparedPartition] = Field(default=[])
    """Only with --deep."""
    state: dict[str, int] | None = None
    """Only with a state table: its `version` of the topic's table, and the keys that are missing, extra or wrong."""


class UpdatedState(Shape):
    """A result of `penstock state`. `since` and `version` are versions of the topic's table; -1 if there was none."""

    cluster: str
    topic: str
    table: str
    since: int
    version: int
    rebuilt: bool
    recomputed: bool
    changed: int
    added: int
    removed: int
    """The numbers of keys: those with another row than before, those of them that are new, those without a row now."""


class CleanedFiles(Shape):
    """What `penstock clean` did with the files of a table."""

    table: str
    collected: list[str]
    bytes: int
    young: int
    """Files that no commit names, of failed loads or of loads in progress, that are younger than `keep_days`."""
    empty: bool
    """Whether nothing has been loaded into the table yet."""
    merged: int
    larger: int
    busy: bool
    foreign: str
    damaged: list[str]
    uploads: int
    """Uploads of files that began longer ago than `keep_days` and were never completed: they were aborted."""
    uploads_unknown: str
    """Why such uploads were not looked for; empty if they were, or if the store has none."""


class CleanedTable(CleanedFiles):
    """A result of `penstock clean`."""

    cluster: str
    topic: str
    state: CleanedFiles | None
    """The same for the state table of the topic, if the settings name one."""


class PrintedCommit(Shape):
    """A result of `penstock history`. A commit of another program has only the fields up to `kind`."""

    version: int
    time: str
    operation: str
    restored: int | None
    undone_by: int | None
    kind: str | None
    run: str = ""
    commit: str = ""
    sequence: int = 0
    code: str = ""
    target: int | None = None
    incarnation: str = ""
    rows: int = 0
    bytes: int = 0
    files: int = 0
    gaps: Gaps = Field(default={})
    sources: list[str] = Field(default=[])
    choices: list[dict[str, Any]] = Field(default=[])
    """The ledger stores them in this form."""
    covered: dict[str, list[int]] = Field(default={})
    ranges: list[dict[str, Any]] = Field(default=[])
    """The ledger stores them in this form."""
    columns: list[dict[str, Any]] = Field(default=[])
    """The columns that the commit added to a typed table, as fields of Delta's schema."""
    event_time: dict[str, Any] | None = None
    """The event time after the commit, as the ledger stores it; null if the settings do not ask for it."""


class RewoundCursor(Shape):
    """A cursor before and after a rewind; null where the table does not cover the partition."""

    broker: int | None
    partition: int
    before: int | None
    after: int | None


class RewoundTable(Shape):
    """The result of `penstock rewind`."""

    topic: str
    table: str
    target: int
    time: str
    rows: int
    cursors: list[RewoundCursor]
    version: int


class PrintedColumn(Shape):
    """A column for a field of the values; `is_new` if the next load with rows adds it or a member of it."""

    name: str
    type: str
    field: str
    comment: str
    is_new: bool


class PrintedWriterSchema(Shape):
    """A schema in the registry; `is_met` if the table has records with it. `type` is empty if the id is not known."""

    id: int
    type: str
    subjects: list[str]
    is_met: bool


class PrintedSchema(Shape):
    """The result of `penstock schema`; `version` is null if the topic has no table yet."""

    topic: str
    table: str
    format: str
    version: int | None
    schemas: list[PrintedWriterSchema]
    columns: list[PrintedColumn]
    warnings: list[str]


class PublishedTopic(Shape):
    """The result of `penstock publish`."""

    cluster: str
    topic: str
    messages: int


class PrintedCursor(Shape):
    """A result of `penstock offsets export`."""

    cluster: str
    topic: str
    broker: int | None
    partition: int
    offset: int


class ImportedPartition(Shape):
    """The start of a table in a partition."""

    broker: int | None
    partition: int
    adopted: int | None
    start: int
    earliest: int
    latest: int
    left: int


class ImportedTopic(Shape):
    """A result of `penstock offsets import`; `version` is null with --dry-run."""

    cluster: str
    topic: str
    source: str
    partitions: list[ImportedPartition]
    version: int | None


class CheckedSetting(Shape):
    """A result of `penstock config check`."""

    check: str
    ok: bool
    message: str
    errors: list[PrintedError]
    repair: str | None
    """How to repair the problem; null if there is none."""


class CreatedSettings(Shape):
    """The result of `penstock init`. If a test failed, the file is not `written`."""

    settings: str
    written: bool
    topics: list[str]
    commands: list[str]
    """The commands that come next."""
    checks: list[CheckedSetting]
    errors: list[PrintedError]


class ExplainedCode(Shape):
    """A result of `penstock explain`. Its texts are Markdown, with code in backquotes."""

    code: str
    kinds: list[str]
    """The names of the errors with this code, as in `kind` of an error."""
    family: str
    title: str
    meaning: str
    causes: str
    repairs: list[str]
    page: str
    """A page of the documentation and its section that tell more."""
    exit_code: int
    """The exit code of a command that ends with this error alone."""


NoResults = Annotated[list[Any], Field(max_length=0)]
OUTPUT: TypeAdapter[Any] = TypeAdapter(
    Annotated[
        Output[Literal["load"], list[LoadedTopic]]
        | Output[Literal["replay"], list[ReplayedTopic]]
        | Output[Literal["redecode"], list[RedecodedTopic]]
        | Output[Literal["verify"], list[VerifiedTable]]
        | Output[Literal["state"], list[UpdatedState]]
        | Output[Literal["clean"], list[CleanedTable]]
        | Output[Literal["complete"], list[CompletedTable]]
        | Output[Literal["status", "topics"], list[ShownTopic]]
        | Output[Literal["history"], list[PrintedCommit]]
        | Output[Literal["rewind"], list[RewoundTable]]
        | Output[Literal["schema"], list[PrintedSchema]]
        | Output[Literal["publish"], list[PublishedTopic]]
        | Output[Literal["offsets export"], list[PrintedCursor]]
        | Output[Literal["offsets import"], list[ImportedTopic]]
        | Output[Literal["init"], list[CreatedSettings]]
        | Output[Literal["config check"], list[CheckedSetting]]
        | Output[Literal["config show"], list[dict[str, Any]]]
        | Output[Literal["explain"], list[ExplainedCode]]
        | Output[Literal["tail"], NoResults]
        | Output[Literal["", "broker", "completion", "config", "offsets", "registry", "zookeeper"], NoResults]
        | Output[Literal["config reference", "config schema"], NoResults],
        Field(discriminator="command"),
    ]
)
"""Everything that `--json` prints, except the records of `penstock tail`, which are one object per line."""


def schema() -> dict[str, Any]:
    """The JSON Schema of OUTPUT."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "penstock --json",
        **OUTPUT.json_schema(),
    }
