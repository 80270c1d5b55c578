"""The tests of `penstock config check`, and the settings file that `penstock init` writes."""
