"""Each fault is a small class: what it changes before the fleet starts, one injection, and how it heals."""
