"""Programs that a load starts or uses: Spark, Java, ZooKeeper, DuckDB."""
