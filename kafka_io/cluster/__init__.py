"""What a cluster holds: topics, bounds, timestamps, retention, leader epochs."""
