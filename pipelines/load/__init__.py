"""A topic is loaded: discover, reconcile, plan, fetch, commit."""
