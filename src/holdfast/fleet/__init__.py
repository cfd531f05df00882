"""What machines share: locks with tokens, and later more."""
