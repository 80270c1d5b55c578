"""JSON values: columns from a JSON Schema, from the settings or from a sample, and the decoder that fills them."""
