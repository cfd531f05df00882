"""Where the CPU time of a job goes in a worker process."""
