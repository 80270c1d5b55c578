"""Protobuf values to typed columns.

decoder      values, with or without the frame of a schema registry, to rows
program      message types and the columns as a program that the kernel `kernels/protobuf_rows` runs
columns      the columns of a message type
descriptors  schemas: message types that google.protobuf resolved
files        schemas in files: `.proto` files with their imports, and descriptor sets
proto_text   the text of a `.proto` file as a descriptor
tokens       the tokens of such a text
"""
