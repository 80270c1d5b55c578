"""What Dagster shows: asset keys and specs, the known topics, metadata, and what checks judge."""
