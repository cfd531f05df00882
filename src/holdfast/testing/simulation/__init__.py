"""A whole fleet in one process: seeded, in virtual time, with real SQLite files, faults, and a checker for each promise.

`python -m holdfast.testing.simulation --seeds 2000` runs it; a failing seed prints what broke and how to replay it.
"""
