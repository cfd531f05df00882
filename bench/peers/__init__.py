"""One small program for each peer, run in a virtual environment of its own.

Each has `prepare` (make the tables), `Producer` (open, one, perhaps many, close), `workers` (the commands that start so many
processes) and, where the store can tell, `left` (jobs that are not finished).
"""
