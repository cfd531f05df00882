"""Nodes that run the production worker, with tasks, schedules and a supervisor, on a store that writes down every call."""
