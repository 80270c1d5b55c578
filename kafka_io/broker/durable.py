"""What an fsync of a file leaves open: its name."""

import os
from pathlib import Path


def sync_names(*directories: Path) -> None:
    """Make the names of new files in these directories durable: an fsync of a file does not cover its name."""
    for directory in directories:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
