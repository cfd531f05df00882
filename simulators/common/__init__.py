"""What every simulator has: a server on a free port, faults by switch, a ledger, and a clock that can be moved."""
