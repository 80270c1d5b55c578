"""Increments: what is new in a table since a consumer last looked, with each row in effect once."""
