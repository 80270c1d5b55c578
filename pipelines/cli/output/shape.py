"""The base of the shapes of `--json`, and the shape of an error."""

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """The base of all shapes. The docstring below a field is its description in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class PrintedError(Shape):
    """An error. The fields of its place are null if the place is not known."""

    code: str
    """The code, such as `PS-301`: `penstock explain PS-301` says what it means. It never gets another meaning."""
    kind: str
    """The name of the error, such as `CursorExpired`; `UsageError` for wrong use."""
    message: str
    """A sentence that says what happened. It does not contain the place."""
    cluster: str | None
    broker: str | None
    topic: str | None
    partition: str | None
    """The partition in the form that `--partition` takes: a number, or `BROKER-N` in Kafka 0.7."""
    offset: int | None
    registry: str | None
    """The name of a schema registry of the settings."""
    subject: str | None
    """A subject of the schema registry."""
    schema_id: int | None
    """The id of a schema in the registry."""
    retriable: bool
    """Whether the same command can succeed later without a change."""
