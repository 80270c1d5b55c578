"""What Dagster does without a user: sensors and schedules."""
