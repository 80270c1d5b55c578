"""A REST catalog in a process of Java: Iceberg's own handlers and JDBC catalog behind the HTTP server of the JDK."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from resources.machines.java import find_java
from resources.machines.processes import dying_with_parent
from tests.brokers.jars import IVY_FILE, jars_folder

SECRET = "canary-token"
"""The token that requests must have, and the secret of the client `loader` that asks for one."""
_SOURCE = Path(__file__).with_name("RestCatalogServer.java")
_JARS = (("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"), ("org.xerial", "sqlite-jdbc", "3.50.3.0"))
_SPARK_JARS = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api")
_STOP_S = 15.0


def jars() -> Path:
    """The folder with Iceberg's jars. Missing ones are downloaded.

    Raises:
        JarsNotFound: they could not be downloaded.
    """
    line = '    <dependency org="{0}" name="{1}" rev="{2}" transitive="false" conf="default->master"/>'
    return jars_folder("iceberg-rest", IVY_FILE.format(dependencies="\n".join(line.format(*jar) for jar in _JARS)))


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """The address of a server that keeps its catalog in a folder. It ends with the block."""
    of_spark = Path(pyspark.__file__).parent / "jars"
    classpath = [str(jars() / "*"), *(str(next(of_spark.glob(f"{name}-*.jar"))) for name in _SPARK_JARS)]
    java = [str(find_java() / "bin" / "java"), "-Xmx300m"]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*java, "-cp", ":".join(classpath), str(_SOURCE), str(folder), SECRET],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
        )
        assert server.stdout is not None
        try:
            port = server.stdout.readline().decode().strip()
            assert port, (folder / "server.log").read_text()[-2000:]
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(_STOP_S)
            server.stdout.close()
