"""Where a Redis is: the same words for guards as for events."""

from holdfast.transport.redis_url import Target, parse

__all__ = ["Target", "parse"]
