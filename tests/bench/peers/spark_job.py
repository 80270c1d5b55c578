"""What the sessions of all Spark loaders have in common."""

SETTINGS = {"master": "local[2]", "spark.ui.enabled": "false"}
# Less and Spark's own Kafka source spends its time collecting garbage; at level 3, its default, zstd takes longer.
SOURCE_SETTINGS = {
    **SETTINGS,
    "spark.driver.memory": "3g",
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
}
