"""The jars of a broker: downloaded once with the Ivy that PySpark carries, kept below this user's cache."""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from resources.java import cache_dir, find_java
from resources.processes import dying_with_parent
from tests.brokers.releases import RELEASES, Release

_DOWNLOAD_S = 280
_LOG_LINES = 15
_SIZES = "sizes"  # lists the jars of a folder
IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="penstock" module="broker"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '    <dependency org="{0}" name="{1}" rev="{2}" conf="default"/>'
_EXCLUDED = '    <exclude org="{0}" module="{1}"/>'


class JarsNotFound(RuntimeError):
    """The jars are not here and could not be downloaded; the sentence has the end of what Ivy said."""


def classpath(version: str) -> str:
    """Java's class path of the broker `version`, from the cache or downloaded now.

    Raises:
        JarsNotFound: they could not be downloaded.
        JavaNotFound: there is no Java to run Ivy.
    """
    return str(kept(version, _ivy_file(version, RELEASES[version])) / "*")


def kept(name: str, wanted: str) -> Path:
    """The folder of the jars that the Ivy file `wanted` asks for; `name` is for those who look into the cache.

    Raises:
        JarsNotFound: they could not be downloaded.
        JavaNotFound: there is no Java to run Ivy.
    """
    root = cache_dir() / "brokers"
    root.mkdir(exist_ok=True)
    # The name tells what was asked for: a changed row is downloaded anew.
    folder = root / f"{name}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    if not _is_whole(folder):
        with _alone(root / "lock"):
            if not _is_whole(folder):  # another process may have made it while we waited
                _fill(folder, wanted, ivy_home=root / "ivy")
    return folder


def _ivy_file(version: str, release: Release) -> str:
    modules = (f"org.apache.kafka:kafka_{release.scala}:{version}", *release.added)
    lines = [_DEPENDENCY.format(*module.split(":")) for module in modules]
    lines += [_EXCLUDED.format(*module.split(":")) for module in release.excluded]
    return IVY_FILE.format(dependencies="\n".join(lines))


def _is_whole(folder: Path) -> bool:
    """Every jar is there, in the size it came in. The list is written last, and the folder then gets its name."""
    try:
        listed = (folder / _SIZES).read_text()
        return listed == _sizes(folder) != ""
    except FileNotFoundError:  # or another process is about to make it anew
        return False


def _sizes(folder: Path) -> str:
    return "".join(f"{jar.stat().st_size} {jar.name}\n" for jar in sorted(folder.glob("*.jar")))


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the system takes the lock from a killed one."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill(folder: Path, wanted: str, ivy_home: Path) -> None:
    partial = folder.with_name("partial")  # what a killed process left is in here
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    partial.mkdir()
    (partial / "ivy.xml").write_text(wanted)
    _retrieve(partial, ivy_home)
    (partial / _SIZES).write_text(_sizes(partial))
    partial.rename(folder)


def _retrieve(folder: Path, ivy_home: Path) -> None:
    """Ivy's own settings hold: its public repository, its checksums."""
    (ivy_jar,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    java = [str(find_java() / "bin" / "java"), f"-Divy.home={ivy_home}", "-jar", str(ivy_jar)]
    what = ["-ivy", str(folder / "ivy.xml"), "-types", "jar", "bundle"]
    where = ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    said = folder / "ivy.log"
    with said.open("wb") as log:
        try:
            subprocess.run(
                [*java, *what, *where],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=_DOWNLOAD_S,
                check=True,
                preexec_fn=dying_with_parent(),
            )
        except subprocess.SubprocessError as error:
            lines = said.read_text(errors="replace").splitlines()
            raise JarsNotFound("\n".join(["The end of what Ivy said:", *lines[-_LOG_LINES:]])) from error


def main() -> None:
    """Download the jars of all versions that are not in the cache, so that no test has to wait for them."""
    for version in RELEASES:
        classpath(version)


if __name__ == "__main__":
    main()
