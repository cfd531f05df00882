"""The outside world as real servers on loopback. Nothing here imports holdfast: a bug that both shared would hide."""
