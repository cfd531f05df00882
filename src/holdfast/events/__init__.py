"""Events between parts of a system: outbox, relay, bus and inbox. A delivery to a subscriber is a job."""
