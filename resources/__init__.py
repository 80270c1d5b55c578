"""Everything outside of the pipelines: settings, Spark, the lake, Kafka clusters, and their errors."""
