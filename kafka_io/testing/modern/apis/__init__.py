"""The handlers of the APIs: `(request, node, caller) -> answer`; the answer is None if the client expects none."""
