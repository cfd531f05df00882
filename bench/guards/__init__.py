"""What a guard adds to a call, beside the libraries that do parts of it."""
