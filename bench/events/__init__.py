"""How fast events go from the caller's transaction to those who hear them, beside FastStream and the raw clients."""
