"""The services outside: one guard for each, typed answers, and errors that say what they mean."""
