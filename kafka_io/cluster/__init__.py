"""The content of a cluster: topics, bounds, timestamps, retention, leader epochs."""
