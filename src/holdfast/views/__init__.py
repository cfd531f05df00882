"""Read models: rows that projections make of events, and values that are cached."""
