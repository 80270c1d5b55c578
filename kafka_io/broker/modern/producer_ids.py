"""Ids for idempotent producers; none is given twice, also over restarts."""

import threading
from pathlib import Path

from kafka_io.broker.modern.json_file import JsonFile

_FILE = "producer-ids.json"


class ProducerIds:
    """Counts up, in a small file."""

    def __init__(self, data_dir: Path) -> None:
        self._file = JsonFile(data_dir / _FILE)
        self._taking = threading.Lock()

    def take(self) -> int:
        """An id that nobody has.

        Raises:
            OSError: the disk refuses.
            Corrupt: the file is no such.
        """
        with self._taking:
            taken = int(self._file.read({}).get("next", 0))
            self._file.write({"next": taken + 1})
            return taken
