"""The section `[catalog]`: where Iceberg tables are registered."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from kafka_io.net.secret import is_reference
from resources.settings.section import Section, reference, with_references


def _uri(value: Any, info: ValidationInfo) -> Any:
    """The address, with an absolute path in a reference to a file.

    Raises:
        ValueError: the reference is malformed, or the address has a password in it.
    """
    if not isinstance(value, str) or is_reference(value):
        return reference(value, info)
    user = value.partition("://")[2].rpartition("@")[0]
    if ":" in user:
        raise ValueError("has a password in it: store the whole address as a secret, and write env:NAME or file:PATH")
    return value


class CatalogSettings(Section):
    """The catalog of Iceberg tables, from which query engines read them by name.

    `catalog = "sqlite"` at the top of the file is the same as a section with this `type` alone.
    """

    type: Literal["sqlite", "sql", "rest"] = "sqlite"
    """"sqlite" is the file `_catalog.db` in the folder of the lake, and needs no server. "sql" is a database such as
    Postgres. "rest" is a server with the REST interface of Iceberg."""

    uri: Annotated[str, BeforeValidator(_uri)] | None = Field(default=None, min_length=1)
    """Address of the database, as SQLAlchemy writes it: `postgresql+psycopg://user@host/database`. Or the address of
    the REST server. An address with a password is a secret: `env:NAME`, `file:PATH` or `command:LINE`."""

    credential: Annotated[str, BeforeValidator(reference)] | None = None
    """Client and secret for a REST server that gives out tokens (OAuth 2), as `client:secret`: a reference to them."""

    token: Annotated[str, BeforeValidator(reference)] | None = None
    """Token for a REST server: a reference to it."""

    warehouse: str | None = Field(default=None, min_length=1)
    """Name of the warehouse at a REST server that has several."""

    options: Annotated[dict[str, str], BeforeValidator(with_references)] = Field(default={})
    """Further properties of the REST catalog, passed to pyiceberg, such as `oauth2-server-uri` or
    `rest.sigv4-enabled`. A secret is a reference."""

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.type != "sqlite" and self.uri is None:
            raise ValueError(f'uri: set it for `type = "{self.type}"`')
        if self.type == "sqlite" and self.uri is not None:
            raise ValueError('uri: `type = "sqlite"` has its file in the lake; use `type = "sql"` for a database')
        others = [name for name in ("credential", "token", "warehouse", "options") if getattr(self, name)]
        if self.type != "rest" and others:
            raise ValueError(f'{others[0]}: only `type = "rest"` has it')
        return self

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties for pyiceberg besides the address; secrets are references."""
        own = {"credential": self.credential, "token": self.token, "warehouse": self.warehouse}
        return {**self.options, **{name: value for name, value in own.items() if value}}


def catalog_section(value: Any) -> Any:
    """The section; a text is its `type`."""
    return {"type": value} if isinstance(value, str) else value
