"""What proofs of the systems share: places, processes that are kept and hurt, and the table at the end."""
