"""Record bytes to Arrow columns and back.

There are two dialects. Of each, from its face down to its loops over bytes:

    0.7         columns    decode_v07, and Limits and Decoded, which both share
                batches    where whole messages end; what a broker checks on produce
                sets       a message set, and those compressed inside it
                growing    its columns
                kernels/sets

    0.8 to 4.x  logs       decode, Decoder
                extent     how far an answer reaches, before it is decoded
                entries    an answer while it is read; what the next two have in common
                message_entries, batch_entries    formats 0 and 1; format 2 and its transactions
                filling, schema, assembling       its columns
                kernels/messages, kernels/batches, kernels/target, kernels/texts

Both stand on layout (where bytes are), memory, compiling, native, checksums, kernels/scalars and kernels/crc32. `build`
writes all formats.
"""
