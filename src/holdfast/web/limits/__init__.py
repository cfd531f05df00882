"""What the edge refuses before it costs anything: too many requests, too many bytes, too much work that waits."""
