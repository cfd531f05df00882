"""Looking at what goes on: lines of the log, for people and for programs."""

from holdfast.observe.formats import ConsoleFormatter, JobFields, JsonFormatter

__all__ = ["ConsoleFormatter", "JobFields", "JsonFormatter"]
