"""Programs of Debian that are run from the user's cache.

If a program is not on the PATH, apt downloads its package once. The package is not installed, because its installation
would start a server.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from resources.machines.java import cache_dir
from tests.tools import as_root


class ProgramMissing(RuntimeError):
    """The program is not on the PATH, and could not be downloaded."""


@cache
def program(name: str, package: str) -> str:
    """The path of a program, which is in a package of Debian.

    Raises:
        ProgramMissing: it is not on the PATH, and could not be downloaded.
    """
    on_path = shutil.which(name)
    if on_path:
        return on_path
    folder = cache_dir() / package
    if not folder.is_dir():
        _download(package, folder)
    return str(folder / "usr" / "bin" / name)


def _download(package: str, folder: Path) -> None:
    """Unpack a package into a folder."""
    if shutil.which("apt-get") is None:
        raise ProgramMissing(f"put the programs of {package} on the PATH: there is no apt-get to download them")
    with tempfile.TemporaryDirectory(dir=cache_dir()) as temporary:
        download = ["apt-get", "download", "-qq", package]
        if _run(download, temporary).returncode != 0:
            _run([*as_root(), "apt-get", "update", "-qq"], temporary)
            completed = _run(download, temporary)
            if completed.returncode != 0:
                raise ProgramMissing(f"`{' '.join(download)}` failed here:\n{completed.stderr}")
        [file] = Path(temporary).glob("*.deb")
        unpacked = Path(temporary) / "unpacked"
        _run(["dpkg-deb", "-x", file.name, unpacked.name], temporary)
        try:
            unpacked.rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise


def _run(command: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
