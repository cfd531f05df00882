"""The services outside: typed answers, and errors that say what they mean."""
