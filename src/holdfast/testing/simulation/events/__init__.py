"""Relays, subscribers, views and caches on several nodes, over the store or a broker: what is simulated in the kind `events`."""
