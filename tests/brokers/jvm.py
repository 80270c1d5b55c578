"""The command line that runs a class of a broker's jars.

With an archive of the classes that it loads (class data sharing, java(1)) a broker needs half of the CPU time to start.
The first broker of a version that ends normally writes this archive into the user's cache.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from resources.machines.java import cache_dir, find_java
from tests import short_lived_jvm
from tests.brokers.jars import classpath

_OPTIONS = (*short_lived_jvm.OPTIONS, "-Dorg.slf4j.simpleLogger.showDateTime=true")
_WRITES_ARCHIVE = "-XX:ArchiveClassesAtExit="


def command(
    version: str, main: str, *arguments: str, options: tuple[str, ...] = (), archive: Path | None = None
) -> list[str]:
    """The command line: Java with `options`, the class path of `version`, the class `main` and its arguments.

    If the version has no archive of classes yet, the JVM writes one to the file `archive` when it ends.

    Raises:
        JarsNotFound: the jars could not be downloaded.
        JavaNotFound: there is no Java.
    """
    java, jars = find_java() / "bin" / "java", classpath(version)
    kept = _archive(java, jars)
    sharing: tuple[str, ...] = ()
    if kept.exists():
        sharing = short_lived_jvm.with_archive(kept)
    elif archive:
        sharing = (f"{_WRITES_ARCHIVE}{archive}", "-Xlog:cds=off")
    return [str(java), *_OPTIONS, *sharing, *options, "-cp", jars, main, *arguments]


def writes_archive(command: Any) -> bool:
    """Whether a JVM with this command line writes an archive when it ends, which takes seconds."""
    return any(part.startswith(_WRITES_ARCHIVE) for part in command)


def keep_archive(version: str, archive: Path) -> None:
    """Move an archive of this version's classes, which a JVM has written completely, into the user's cache."""
    kept = _archive(find_java() / "bin" / "java", classpath(version))
    partial = kept.with_suffix(f".{os.getpid()}")  # only a complete file gets the name that other processes look for
    shutil.move(archive, partial)
    partial.rename(kept)


def _archive(java: Path, jars: str) -> Path:
    """The archive for a Java and the jars of a class path. A JVM ignores an archive that does not fit."""
    key = hashlib.sha256(f"{java} {java.stat().st_mtime_ns} {jars}".encode()).hexdigest()
    return cache_dir() / "brokers" / f"{key[:16]}.jsa"
