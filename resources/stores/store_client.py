"""The client for the files of a table: of a folder on a local disk, or of an object store."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Protocol

from resources.stores import durable
from resources.stores.folder_client import FolderClient
from resources.stores.object_client import object_client
from resources.stores.stored_object import StoredObject


class StoreClient(Protocol):
    """Single requests for what is below a URI; see ObjectClient and FolderClient."""

    reads_at_once: ClassVar[bool]

    def read(self, path: str) -> StoredObject:
        """The object with its content."""

    def read_all(self, paths: Sequence[str]) -> Sequence[StoredObject]:
        """The objects in the order of the paths."""

    def list(self, folder: str, *, after: str = "") -> Iterator[StoredObject]:
        """The objects in the folder and below it, whose paths come after `after`."""

    def create(self, path: str, content: bytes) -> str | None:
        """Write an object that must be absent; returns its mark."""

    def write(self, path: str, content: bytes) -> str | None:
        """Write an object in the place of the one that may be there; returns its mark."""


def store_client(uri: str, options: Mapping[str, str]) -> StoreClient | None:
    """The client for what is below the URI; None if only deltalake can use the store, see `object_client`.

    Raises:
        SecretMissing: an option refers to a secret that does not exist.
    """
    folder = durable.local_path(uri)
    return FolderClient(folder) if folder else object_client(uri, options)
