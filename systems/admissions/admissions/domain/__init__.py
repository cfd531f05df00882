"""What an admission means, without any I/O: states, forms, roles, deadlines and decisions, in the standard library alone."""
