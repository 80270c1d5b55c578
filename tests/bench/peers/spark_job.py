"""What the sessions of all Spark loaders have in common."""

SETTINGS = {"master": "local[2]", "spark.ui.enabled": "false"}
# Less and Spark's own Kafka source spends its time collecting garbage.
SOURCE_SETTINGS = {**SETTINGS, "spark.driver.memory": "3g"}
