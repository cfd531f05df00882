"""What publishing means, without any I/O: states, rules, choices and errors, in the standard library alone."""
