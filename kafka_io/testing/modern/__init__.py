"""The embedded broker from 0.8 on: record batches in an offset-indexed log, served in two dialects."""
