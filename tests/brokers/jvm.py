"""The command that runs a class of a broker's jars."""

from resources.java import find_java
from tests.brokers.jars import classpath

# Most of what a broker does here is to start, for which the quick compiler is best: 2.3 s of CPU for 3.4 (3.9.1).
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.showDateTime=true")


def command(version: str, main: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    """Java, its `options`, the jars of `version` and its class `main`.

    Raises:
        JarsNotFound: the jars could not be downloaded.
        JavaNotFound: there is no Java.
    """
    java = str(find_java() / "bin" / "java")
    return [java, *_OPTIONS, *options, "-cp", classpath(version), main, *arguments]
