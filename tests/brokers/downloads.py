"""`python -m tests.brokers.downloads`: downloads all real servers that are not in the cache, so that no test waits."""

from tests.brokers.apicurio import unpacked_archive
from tests.brokers.jars import classpath
from tests.brokers.releases import RELEASES
from tests.catalogs.rest_catalog import jars
from tests.postgres_server import jar

if __name__ == "__main__":
    for version in RELEASES:
        classpath(version)
    unpacked_archive()
    jar()
    jars()
