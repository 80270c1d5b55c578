"""Whether a topic and its table still belong together: incarnations, truncated and rewritten logs, holes."""
