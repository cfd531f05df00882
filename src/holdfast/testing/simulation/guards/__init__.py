"""Guards on several nodes before a provider that misbehaves: what is simulated in the kind `guards`."""
