"""Single requests to an object store: read, list, write, and create if absent.

deltalake sends more requests than it needs, and its file system holds Python's lock while it waits for an answer. So
the log of a table and its data files go through `obstore`, which wraps the same client of object stores as deltalake.
A store whose options only deltalake understands has no ObjectClient: see `object_client`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from resources.stores.store_options import duration, store_options
from resources.stores.stored_object import StoredObject

_SCHEMES = {"s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"}
_REQUESTS_AT_ONCE = 16
PART_BYTES = 8 * 1024 * 1024
_PARTS_AT_ONCE = 2
_CLIENT_FLAGS = {
    "allow_http",
    "allow_invalid_certificates",
    "http1_only",
    "http2_only",
    "randomize_addresses",
}
_CLIENT_OPTIONS = _CLIENT_FLAGS | {
    "connect_timeout",
    "default_content_type",
    "http2_keep_alive_interval",
    "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "read_timeout",
    "timeout",
    "user_agent",
}
_RETRY_OPTIONS = {"max_retries", "retry_timeout"}
_BACKOFF = "backoff_config."
_LOCKING = {"aws_s3_locking_provider", "aws_s3_allow_unsafe_rename", "copy_if_not_exists", "aws_copy_if_not_exists"}
"""Options of stores without put if absent. deltalake then writes a log entry in another way."""
_CONDITIONAL_PUT = ("aws_conditional_put", "conditional_put")
_KEYS = ("aws_access_key_id", "access_key_id", "aws_skip_signature", "skip_signature")
_ENVIRONMENT_KEYS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_USER = re.compile(r"//[^/@\s]+@")
_TRUE = {"1", "true", "on", "yes", "y"}


@dataclass(frozen=True, slots=True)
class ObjectClient:
    """The objects below a URI of an object store. Paths are relative to it."""

    store: Any = field(repr=False)
    prefix: str
    reads_at_once: ClassVar[bool] = True
    """Whether `read_all` takes about as long as one `read`."""

    def read(self, path: str) -> StoredObject:
        """The object with its content, in one request.

        Raises:
            FileNotFoundError: there is no such object.
            OSError: the store does not answer, or refuses the request.
        """
        import obstore  # noqa: PLC0415 - lakes on a disk do not need it

        with _errors():
            answer = obstore.get(self.store, self.key(path))
            return StoredObject(path, answer.meta["e_tag"], bytes(answer.bytes()))

    def read_all(self, paths: Sequence[str]) -> Sequence[StoredObject]:
        """The objects in the order of the paths, read at the same time.

        Raises:
            FileNotFoundError: one of them is not there.
            OSError: the store does not answer, or refuses a request.
        """
        if len(paths) < 2:
            return [self.read(path) for path in paths]
        with ThreadPoolExecutor(min(len(paths), _REQUESTS_AT_ONCE)) as threads:
            return list(threads.map(self.read, paths))

    def list(self, folder: str, *, after: str = "") -> Iterator[StoredObject]:
        """The objects in the folder and below it, whose paths come after `after`, in the order of the store.

        Raises:
            OSError: the store does not answer, or refuses the request.
        """
        import obstore  # noqa: PLC0415 - lakes on a disk do not need it

        with _errors():
            for page in obstore.list(self.store, self.key(folder), offset=self.key(after) if after else None):
                for meta in page:
                    path = self._relative(meta["path"])
                    if path > after:  # some stores ignore where a listing starts
                        yield StoredObject(path, meta["e_tag"])

    def entries(self, folder: str, *, recursive: bool) -> Iterator[pafs.FileInfo]:
        """List the objects and the folders in a folder. With `recursive`, list all objects below it, and no folders.

        Raises:
            OSError: the store does not answer, or refuses the request.
        """
        import obstore  # noqa: PLC0415 - lakes on a disk do not need it

        with _errors():
            pages: Iterable[Sequence[Any]]
            if recursive:
                pages = obstore.list(self.store, self.key(folder))
            else:
                listing = obstore.list_with_delimiter(self.store, self.key(folder))
                for path in listing["common_prefixes"]:
                    yield pafs.FileInfo(self._relative(path), pafs.FileType.Directory)
                pages = [listing["objects"]]
            for meta in chain.from_iterable(pages):
                path, size, time = self._relative(meta["path"]), meta["size"], meta["last_modified"]
                yield pafs.FileInfo(path, pafs.FileType.File, size=size, mtime=time)

    def _relative(self, key: str) -> str:
        return key.removeprefix(self.key(""))

    def create(self, path: str, content: bytes) -> str | None:
        """Write an object that must be absent, in one request; returns its mark.

        Raises:
            FileExistsError: there is such an object.
            OSError: the store does not answer, and the object may be there; or it refuses the request.
        """
        return self._put(path, content, "create")

    def write(self, path: str, content: bytes) -> str | None:
        """Write an object in one request, in the place of the one that may be there; returns its mark.

        Raises:
            OSError: the store does not answer, or refuses the request.
        """
        return self._put(path, content, "overwrite")

    def open_writer(self, path: str) -> "ObjectWriter":
        """A file that becomes an object when it is closed."""
        return ObjectWriter(self, path)

    def _put(self, path: str, content: bytes, mode: Any) -> str | None:
        import obstore  # noqa: PLC0415 - lakes on a disk do not need it

        with _errors():
            result = obstore.put(self.store, self.key(path), content, mode=mode, use_multipart=False)
            return result["e_tag"]

    def key(self, path: str) -> str:
        """The name of an object in its bucket."""
        return f"{self.prefix}/{path}" if self.prefix else path


class ObjectWriter:
    """A file for pyarrow that becomes an object when it is closed.

    An object below 8 MiB takes one request. A larger one is sent in parts of this size while it is written. If the file
    is never closed, there is no object; the parts of a large one stay in an upload that is not completed.
    """

    def __init__(self, client: ObjectClient, path: str) -> None:
        import obstore  # noqa: PLC0415 - lakes on a disk do not need it

        self._size, self.closed = 0, False
        with _errors():
            self._file = obstore.open_writer(
                client.store, client.key(path), buffer_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE
            )

    def tell(self) -> int:
        """The bytes that were written."""
        return self._size

    def write(self, content: Any) -> int:
        """Take more of the content."""
        view = memoryview(content).cast("B")  # a buffer of Arrow has signed bytes, which obstore refuses
        with _errors():
            self._file.write(view)
        self._size += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Do nothing: an object has no content before it is complete."""

    def close(self) -> None:
        """Complete the object.

        Raises:
            OSError: the store does not answer, and the object may be there; or it refuses the request.
        """
        if not self.closed:
            self.closed = True
            with _errors():
                self._file.close()


def object_client(uri: str, options: Mapping[str, str]) -> ObjectClient | None:
    """The client for what is below the URI; None if only deltalake can use the store.

    These are local disks and HDFS, stores with a locking provider, credentials in the files of AWS's command line, and
    options that only deltalake knows.

    Raises:
        SecretMissing: an option refers to a secret that does not exist.
    """
    url = urlsplit(uri)
    if url.scheme not in _SCHEMES:
        return None
    resolved = {name.lower(): value for name, value in store_options(options).items()}
    if url.scheme.startswith("s3") and _needs_deltalake(resolved):
        return None
    store = _store(f"{url.scheme}://{url.netloc}", tuple(sorted(resolved.items())))
    return None if store is None else ObjectClient(store, unquote(url.path).strip("/"))


def _needs_deltalake(options: Mapping[str, str]) -> bool:
    """Whether log entries are written with a lock, or the credentials come from the files of AWS's command line."""
    environment = {name.lower() for name in os.environ}
    puts = [options.get(name, os.environ.get(name.upper(), "etag")) for name in _CONDITIONAL_PUT]
    if _LOCKING & (options.keys() | environment) or set(puts) != {"etag"}:
        return True
    if any(name in options for name in _KEYS) or any(name in os.environ for name in _ENVIRONMENT_KEYS):
        return False
    files = (os.environ.get("AWS_CONFIG_FILE"), os.environ.get("AWS_SHARED_CREDENTIALS_FILE"))
    folder = Path("~/.aws").expanduser()
    paths = [Path(file) for file in files if file] + [folder / "config", folder / "credentials"]
    return "AWS_PROFILE" in os.environ or any(path.exists() for path in paths)


@lru_cache(maxsize=8)
def _store(root: str, options: tuple[tuple[str, str], ...]) -> Any:
    """The client of a bucket, which keeps its connections; None if it does not know one of the options."""
    from obstore.exceptions import BaseError  # noqa: PLC0415 - lakes on a disk do not need it
    from obstore.store import from_url  # noqa: PLC0415

    try:
        config, client, retries = _split(dict(options))
        return from_url(root, config=config, client_options=client, retry_config=retries)
    except (BaseError, ValueError, TypeError):  # deltalake ignores what it does not know, or says what is wrong
        return None


def _split(options: Mapping[str, str]) -> tuple[Any, Any, Any]:
    """The options of deltalake, in the three groups of obstore."""
    config: dict[str, Any] = {}
    client: dict[str, Any] = {}
    retries: dict[str, Any] = {}
    for name, value in options.items():
        plain = name if name in _CLIENT_OPTIONS else name.partition("_")[2]
        if name.startswith(_BACKOFF):
            backoff = retries.setdefault("backoff", {})
            backoff[name.removeprefix(_BACKOFF)] = float(value) if name.endswith(".base") else duration(value)
        elif name in _RETRY_OPTIONS:
            retries[name] = int(value) if name == "max_retries" else duration(value)
        elif plain in _CLIENT_OPTIONS:
            client[plain] = value.lower() in _TRUE if plain in _CLIENT_FLAGS else value
        else:
            config[name] = value
    return config, client, retries


@contextmanager
def _errors() -> Iterator[None]:
    """Turn errors of obstore into those of Python, with the first paragraph of their text: others are dumps."""
    from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError  # noqa: PLC0415 - see above

    try:
        yield
    except AlreadyExistsError as error:
        raise FileExistsError(_first_paragraph(error)) from None
    except NotFoundError as error:
        raise FileNotFoundError(_first_paragraph(error)) from None
    except FileNotFoundError as error:
        raise FileNotFoundError(_first_paragraph(error)) from None
    except BaseError as error:
        raise OSError(_first_paragraph(error)) from None


def _first_paragraph(error: Exception) -> str:
    """The message without the dump after it, and without a password in the URL of the store."""
    return _USER.sub("//", str(error).partition("\n\n")[0])
