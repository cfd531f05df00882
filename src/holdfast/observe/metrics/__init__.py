"""Metrics for Prometheus, right over several processes."""
