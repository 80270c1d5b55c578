"""Proofs, from the table alone, that it holds what its ledger says."""
