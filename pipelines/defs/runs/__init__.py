"""What Dagster runs: assets, checks and jobs."""
