"""Dagster definitions: assets, checks, sensors, schedules and jobs, each with a short body."""
