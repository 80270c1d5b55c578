"""The Spark settings that all Spark loaders share."""

SETTINGS = {"master": "local[2]", "spark.ui.enabled": "false"}
# With less memory Spark's own Kafka source spends its time in the garbage collector.
SOURCE_SETTINGS = {**SETTINGS, "spark.driver.memory": "3g"}
