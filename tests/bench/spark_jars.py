"""The jars of Spark's own Kafka source, fetched and kept as those of the brokers are."""

from tests.brokers import jars

# spark-sql-kafka is not published for each patch of Spark, and the token provider is missing for 4.1 and 4.2: that of
# 4.0 has what is asked of it where no tokens are used. So they do not bring along what they depend on.
_MODULES = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
_DEPENDENCY = '    <dependency org="{0}" name="{1}" rev="{2}" conf="default->master" transitive="false"/>'


def kafka_source() -> str:
    """Their paths with commas between, as `spark.jars` wants them; downloaded now if they are not there.

    Raises:
        JarsNotFound: they could not be downloaded.
    """
    lines = "\n".join(_DEPENDENCY.format(*module) for module in _MODULES)
    folder = jars.kept("spark-kafka", jars.IVY_FILE.format(dependencies=lines))
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
