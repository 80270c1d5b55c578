"""Several tables for one topic: which records go to which of them."""
