"""Faults on purpose: real processes and real databases, hurt again and again, and then counted. `make chaos`."""
