"""Record bytes to Arrow columns and back.

There are two decoders, one for 0.7 and one for later versions. Each layer builds on those below it:

    0.7         v07_decoder        message sets to Arrow batches; validation of a produced set
                v07_message_set    one message set while it is read, and the sets compressed inside its messages
                kernels/v07_messages

    0.8 to 4.x  decoder            record sets of fetch answers to Arrow batches
                header_scan        the next offset of a fetch answer, from its headers alone
                legacy_messages    message formats 0 and 1
                record_batches     record batches (format 2), with their transactions
                record_set         the position in a record set, shared by the two formats
                kernels/entry_header, kernels/legacy_messages, kernels/record_batches, kernels/utf8

    both        decoded_batch      the result, and the limits of decoding
                column_builder, schema, kernels/column_arrays
                                   columns that kernels fill and Arrow takes over without a copy
                layout             positions of the fields
                crc32c, kernels/crc32, kernels/status_codes

`build` writes all formats.
"""
