"""A shop whose workers are killed and frozen, on real processes and one SQLite file: `make demo`."""
