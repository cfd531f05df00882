"""Read models and the cache: what is served quickly, and may be made again from what is stored."""
