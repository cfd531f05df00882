"""Sagas on several nodes, with steps at a provider that misbehaves: what is simulated in the kind `sagas`."""
