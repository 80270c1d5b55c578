"""How pyiceberg reads and writes the metadata of Iceberg tables: through the file system of the lake.

So metadata has the same credentials, retries and certificates as data files. A small object is written with one
request. A file on a disk survives a loss of power before the catalog names it.
"""

import io
import json
from typing import TYPE_CHECKING

import pyarrow.fs as pafs
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.typedef import EMPTY_DICT, Properties

from kafka_io.errors import Where
from resources.errors import LakeRefused
from resources.stores import durable
from resources.stores.lake import filesystem
from resources.stores.table_catalog import LAKE_OPTIONS, LAKE_ROOT, table_location

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def elsewhere(location: str, root: str) -> LakeRefused:
    """The error for a place of an Iceberg table outside of its lake."""
    return LakeRefused(
        f"the catalog has the table at {location}, which is not in the lake {root}: it belongs to another lake, or the "
        "lake was moved, and Iceberg tables have whole paths",
        Where(),
    )


class LakeFileIO(FileIO):
    """Opens files below the root of a lake, which the properties of the catalog name."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._root = properties[LAKE_ROOT]
        self._place = f"{table_location(self._root).rstrip('/')}/"
        self._files = filesystem(self._root, json.loads(properties[LAKE_OPTIONS]))

    def new_input(self, location: str) -> "LakeFile":
        """A file to read."""
        return self._file(location)

    def new_output(self, location: str) -> "NewLakeFile":
        """A file to write."""
        return NewLakeFile(location, self._root, self._files, self._path(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
        self._files.delete_file(self._path(location if isinstance(location, str) else location.location))

    def _file(self, location: str) -> "LakeFile":
        return LakeFile(location, self._files, self._path(location))

    def _path(self, location: str) -> str:
        """The path of a file below the root.

        Raises:
            LakeRefused: it is somewhere else.
        """
        if not location.startswith(self._place):
            raise elsewhere(location, self._root)
        return location.removeprefix(self._place)


class LakeFile(InputFile):
    """A file of metadata. Its methods raise OSError if the store does not answer."""

    def __init__(self, location: str, files: pafs.FileSystem, path: str) -> None:
        super().__init__(location)
        self._files, self._path = files, path

    def __len__(self) -> int:
        return int(self._files.get_file_info(self._path).size)

    def exists(self) -> bool:
        """Whether the file exists."""
        return bool(self._files.get_file_info(self._path).type == pafs.FileType.File)

    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT002 - pyiceberg calls it so
        """A stream of its content."""
        del seekable
        stream: InputStream = self._files.open_input_file(self._path)
        return stream


class NewLakeFile(OutputFile):
    """A file of metadata that is being written. Its name is new, so it replaces nothing."""

    def __init__(self, location: str, root: str, files: pafs.FileSystem, path: str) -> None:
        super().__init__(location)
        self._root, self._files, self._path = root, files, path

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        """Whether the file exists."""
        return self.to_input_file().exists()

    def to_input_file(self) -> LakeFile:
        """The same file to read."""
        return LakeFile(self.location, self._files, self._path)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: FBT002 - pyiceberg calls it so
        """A stream for its content."""
        del overwrite
        return _DurableStream(self._root, self._files, self._path)


class _DurableStream(io.RawIOBase):
    """Writes a file that survives a loss of power once it is closed."""

    def __init__(self, root: str, files: pafs.FileSystem, path: str) -> None:
        super().__init__()
        self._root, self._path = root, path
        files.create_dir(path.rpartition("/")[0], recursive=True)
        self._stream = files.open_output_stream(path)

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True

    def write(self, data: "ReadableBuffer") -> int:
        """Append bytes."""
        return int(self._stream.write(bytes(data)))

    def tell(self) -> int:
        """The number of bytes that were written."""
        return int(self._stream.tell())

    def close(self) -> None:
        """Close the file, and force it to disk."""
        if not self.closed:
            self._stream.close()
            durable.sync_file(self._root, self._path)
        super().close()
