"""Idempotency keys: a request that is sent again is answered as the first one was, and done once."""
