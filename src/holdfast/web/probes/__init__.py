"""Probes: whether a process lives, is ready, and has started, for whoever looks after it."""
