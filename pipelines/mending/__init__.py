"""Tables that are loaded: looking into their past, and changing what they hold.

It builds on pipelines.loading, which knows nothing of it.
"""
