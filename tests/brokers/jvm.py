"""The command line that runs a class of a broker's jars."""

from resources.java import find_java
from tests import short_lived_jvm
from tests.brokers.jars import classpath

_OPTIONS = (*short_lived_jvm.OPTIONS, "-Dorg.slf4j.simpleLogger.showDateTime=true")


def command(version: str, main: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    """The command line: Java with `options`, the class path of `version`, the class `main` and its arguments.

    Raises:
        JarsNotFound: the jars could not be downloaded.
        JavaNotFound: there is no Java.
    """
    java = str(find_java() / "bin" / "java")
    return [java, *_OPTIONS, *options, "-cp", classpath(version), main, *arguments]
