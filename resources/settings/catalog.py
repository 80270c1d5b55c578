"""The section `[catalog]`: where Iceberg tables are registered."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from kafka_io.net.secret import SecretReference, is_reference
from resources.settings.section import Section, absolute_path


def _uri(value: Any, info: ValidationInfo) -> Any:
    """The address, with an absolute path in a reference to a file.

    Raises:
        ValueError: the reference is malformed, or the address has a password in it.
    """
    if not isinstance(value, str):
        return value
    if value.startswith("file:"):
        value = f"file:{absolute_path(value.removeprefix('file:'), info)}"
    if is_reference(value):
        return str(SecretReference.parse(value))
    user = value.partition("://")[2].rpartition("@")[0]
    if ":" in user:
        raise ValueError("has a password in it: store the whole address as a secret, and write env:NAME or file:PATH")
    return value


class CatalogSettings(Section):
    """The catalog of Iceberg tables, from which query engines read them by name.

    `catalog = "sqlite"` at the top of the file is the same as a section with this `type` alone.
    """

    type: Literal["sqlite", "sql"] = "sqlite"
    """"sqlite" is the file `_catalog.db` in the folder of the lake, and needs no server. "sql" is a database such as
    Postgres, for lakes in object stores and for several machines."""

    uri: Annotated[str, BeforeValidator(_uri)] | None = Field(default=None, min_length=1)
    """Address of the database, as SQLAlchemy writes it: `postgresql+psycopg://user@host/database`. An address with a
    password is a secret: `env:NAME`, `file:PATH` or `command:LINE`."""

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.type == "sql" and self.uri is None:
            raise ValueError('uri: set it for `type = "sql"`')
        if self.type == "sqlite" and self.uri is not None:
            raise ValueError('uri: `type = "sqlite"` has its file in the lake; use `type = "sql"` for a database')
        return self


def catalog_section(value: Any) -> Any:
    """The section; a text is its `type`."""
    return {"type": value} if isinstance(value, str) else value
