"""Slices are fetched, decoded and written as Parquet files, in this process or by Spark."""
