"""The certificate of an erasure: what is left of the rows in everything that Penstock owns."""
