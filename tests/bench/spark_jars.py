"""The jars of Spark's own Kafka source and of its Avro functions.

They are downloaded once into the same cache as the jars of brokers.
"""

from tests.brokers import jars

# spark-sql-kafka is not published for each patch release of Spark, and the token provider is not published for 4.1 and
# 4.2. The provider of 4.0 works as long as no tokens are used. spark-avro is not published for 4.2; that of 4.1 works.
# Therefore each module is named without its dependencies.
_MODULES = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
    ("org.apache.spark", "spark-avro_2.13", "4.1.1"),
)
_DEPENDENCY = '    <dependency org="{0}" name="{1}" rev="{2}" conf="default->master" transitive="false"/>'


def kafka_source() -> str:
    """The paths of the jars, separated by commas as `spark.jars` expects. Missing jars are downloaded.

    Raises:
        JarsNotFound: a jar could not be downloaded.
    """
    lines = "\n".join(_DEPENDENCY.format(*module) for module in _MODULES)
    folder = jars.jars_folder("spark-kafka", jars.IVY_FILE.format(dependencies=lines))
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
