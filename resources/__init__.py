"""What a load needs from outside: settings, Spark, the lake, Kafka. Configuration plus open()."""
