"""The catalog of Iceberg tables: how it is opened, and under which names it has the tables of topics."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kafka_io.errors import Where
from resources.errors import LakeRefused, LakeUnavailable
from resources.extras import check_extra
from resources.stores import durable
from resources.stores.store_options import store_options

if TYPE_CHECKING:  # only Iceberg tables need the library
    from pyiceberg.catalog import Catalog

CATALOG_FILE = "_catalog.db"
"""The name of the embedded catalog's file. Readers of tables ignore names that begin with an underscore."""
_EXTRA = ("iceberg", "a lake with Iceberg tables")
_OTHER = re.compile(r"[^a-z0-9_]")
_HASHED = re.compile(r"_[0-9a-f]{8}$")
_MAX_NAME = 200
_ERRORS = {
    "pyiceberg.exceptions.RESTError",
    "requests.exceptions.RequestException",
    "sqlalchemy.exc.SQLAlchemyError",
}
_REFUSALS = {
    f"pyiceberg.exceptions.{name}" for name in ("BadRequestError", "ForbiddenError", "OAuthError", "UnauthorizedError")
}
_BUSY_S = 30  # how long a writer waits for another one that has locked the file of the embedded catalog
_IO_OPTIONS = {
    "endpoint": "s3.endpoint",
    "endpoint_url": "s3.endpoint",
    "region": "s3.region",
    "default_region": "s3.region",
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "token": "s3.session-token",
}
"""pyiceberg's names of options of an object store, by those of `lake_options` without `aws_`: for those who let it read
rows."""
LAKE_ROOT, LAKE_OPTIONS = "penstock.root", "penstock.options"
"""The properties of a catalog that say how the metadata is read and written."""


def table_identifier(cluster: str, topic: str) -> tuple[str, str]:
    """The namespace and the name of a topic's table. No two tables have the same.

    All catalogs and query engines accept lower-case letters, digits and `_`. A topic with other characters, or with a
    long name, gets the first eight digits of its name's SHA-256 at the end.

    >>> table_identifier("web-shop", "clicks"), table_identifier("main", "Web.clicks")
    (('web_shop', 'clicks'), ('main', 'web_clicks_66a55b08'))
    """
    plain = _OTHER.sub("_", topic.lower())[:_MAX_NAME]
    is_same = plain == topic and not _HASHED.search(plain)
    name = plain if is_same else f"{plain}_{sha256(topic.encode()).hexdigest()[:8]}"
    return cluster_namespace(cluster), name


def cluster_namespace(cluster: str) -> str:
    """The namespace of a cluster's tables."""
    return cluster.replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCatalog:
    """A catalog that was not opened yet.

    Args:
        type: "sqlite" is a file in the lake, "sql" a database, and "rest" a server.
        uri: the address of the database or the server, or a reference to it.
        properties: what pyiceberg needs to know besides. Values can be references to secrets.
    """

    type: Literal["sqlite", "sql", "rest"] = "sqlite"
    uri: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    def is_new(self, root: str) -> bool:
        """Whether this is the embedded catalog of a lake that has none yet. To ask creates nothing.

        Raises:
            ExtraMissing: pyiceberg is not installed.
        """
        check_extra(*_EXTRA)
        folder = durable.local_path(root)
        return self.type == "sqlite" and folder is not None and not (folder / CATALOG_FILE).exists()

    def open(self, root: str, options: Mapping[str, str]) -> "Catalog":
        """The catalog of the lake at `root`, with the options of its store. A process opens a catalog once.

        Raises:
            ExtraMissing: pyiceberg is not installed.
            LakeRefused: the lake with an embedded catalog is no folder.
            SecretMissing: a variable or file does not exist, or is empty.
        """
        check_extra(*_EXTRA)
        own = store_options({"uri": self.uri, **self.properties})
        properties = {
            "py-io-impl": "resources.stores.table_io.LakeFileIO",
            LAKE_ROOT: root,
            LAKE_OPTIONS: json.dumps(options),
            **io_options(options),
            **{name: value.strip() for name, value in own.items()},
        }
        if self.type == "sqlite":
            properties["uri"] = _embedded(root)
        if self.type != "rest":
            properties["warehouse"] = table_location(root)
        elif "credential" in properties:
            properties.setdefault("oauth2-server-uri", f"{properties['uri'].rstrip('/')}/v1/oauth/tokens")
        with catalog_errors():
            return _opened(self.type == "rest", tuple(sorted(properties.items())))


def _embedded(root: str) -> str:
    """The address of the file in the lake, whose folder is created."""
    folder = durable.local_path(root)
    if folder is None:
        raise LakeRefused("an embedded catalog needs a lake in a folder", Where())
    folder.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{folder.absolute() / CATALOG_FILE}?timeout={_BUSY_S}"


EMBEDDED = TableCatalog()


def io_options(options: Mapping[str, str]) -> Mapping[str, str]:
    """The options of a lake's store as pyiceberg names them; those that it does not know are left out."""
    plain = {name.lower().removeprefix("aws_"): value for name, value in store_options(options).items()}
    return {_IO_OPTIONS[name]: value for name, value in plain.items() if name in _IO_OPTIONS}


@cache
def _opened(is_rest: bool, properties: tuple[tuple[str, str], ...]) -> "Catalog":
    from pyiceberg.catalog.rest import RestCatalog  # noqa: PLC0415 - only Iceberg tables need it
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    if is_rest:
        return RestCatalog("penstock", **dict(properties))
    try:
        return SqlCatalog("penstock", **dict(properties))
    except SQLAlchemyError:  # another process may create the tables of the database at the same time
        return SqlCatalog("penstock", **dict(properties))


def create_table(catalog: "Catalog", identifier: tuple[str, ...], **arguments: Any) -> None:
    """Create a table and its namespace, unless they exist.

    Others may create them at the same time. Then each catalog has other errors, so only a second look tells.

    Raises:
        Exception: what the catalog raises, if the table does not exist afterwards.
    """
    namespace = identifier[:-1]
    try:
        catalog.create_namespace_if_not_exists(namespace)
    except Exception:
        if not catalog.namespace_exists(namespace):
            raise
    try:
        catalog.create_table(identifier, **arguments)
    except Exception:
        if not catalog.table_exists(identifier):
            raise


def names_of(catalog: "Catalog", cluster: str) -> frozenset[str]:
    """The names of all tables that a catalog has of a cluster."""
    from pyiceberg.exceptions import NoSuchNamespaceError  # noqa: PLC0415 - only Iceberg tables need it

    namespace = cluster_namespace(cluster)
    try:
        return frozenset(name for *_, name in catalog.list_tables(namespace))
    except NoSuchNamespaceError:  # nothing of the cluster was loaded yet
        return frozenset()


@contextmanager
def catalog_errors() -> Iterator[None]:
    """Turn errors of a catalog inside a `with` block into LakeUnavailable, or LakeRefused if they would come again.

    A conflict of commits stays as it is. The modules of the errors are not imported: if they are not there, the error
    is none of theirs.
    """
    try:
        yield
    except Exception as error:
        kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
        if kinds.isdisjoint(_ERRORS):
            raise
        lines = str(getattr(error, "orig", None) or error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        if kinds & _REFUSALS:
            raise LakeRefused(f"the catalog of the Iceberg tables refuses the request: {reason}", Where()) from error
        raise LakeUnavailable(f"the catalog of the Iceberg tables does not answer: {reason}", Where()) from error


def table_location(uri: str) -> str:
    """The place of a folder or of a URI as a catalog writes it."""
    folder = durable.local_path(uri)
    return uri if folder is None else f"file://{Path(folder).absolute()}"
