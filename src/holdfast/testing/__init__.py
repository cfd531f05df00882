"""For your tests and ours: a clock moved by hand, and the suite that every store must pass. Nothing is imported unasked."""
