"""Traces for OpenTelemetry: spans of jobs, events, steps and guarded calls, linked across the store."""
