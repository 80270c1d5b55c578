"""SASL without sockets: each mechanism computes the bytes to send from the bytes received.

Only the library for Kerberos talks to other servers itself.
"""
