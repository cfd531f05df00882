"""Alerts: what a person should know of, told once when it begins, and once when it is over."""
