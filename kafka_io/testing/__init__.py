"""Embedded brokers with real logs on disk: 0.7 in `v07`, later generations in `modern`; both share the files here."""
