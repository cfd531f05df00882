"""The kind `alerts`: workers that look for what a person should know of, and tell it."""
