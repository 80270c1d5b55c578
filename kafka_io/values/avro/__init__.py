"""Avro values to typed columns.

decoder      values to rows
frames       what values have before their body if their schema is in a file
fingerprint  the number by which a single object names its schema
program      a writer's schema and the columns as a program that the kernel `kernels/avro_rows` runs
columns      the columns of a schema
json_text    values of recursive types as JSON
schema       schemas as objects
"""
