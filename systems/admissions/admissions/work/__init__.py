"""What is done without a person: the stages of the pipeline, look-ups, withdrawals and releases."""
