"""Around one call: deadline, retry, breaker, limiter, bulkhead and fallback; they know no storage and no jobs."""
