"""The wire boundary: one port, and an adapter for each broker."""
