"""A real run of a guard that three processes share: a provider that throttles, is down for a while, and is well again."""
