"""Avro values to typed columns.

decoder      values with the frame of a schema registry, to rows
program      a writer's schema and the columns as a program that the kernel `kernels/avro_rows` runs
columns      the columns of a schema
json_text    values of recursive types as JSON
schema       schemas as objects
"""
