"""What a JetStream may lose, said from the settings of its stream."""

from __future__ import annotations

from holdfast.transport.nats_api import SECOND, StreamConfig

UNKNOWN = "not known before it is open"


def loss_of(config: StreamConfig) -> str:
    return "; ".join(clause for clause in (_window(config), _limits(config)) if clause)


def _window(config: StreamConfig) -> str:
    if config.storage == "memory":
        lost = "everything with its servers" if config.num_replicas > 1 else "everything with its server"
        return f"{lost}: the stream is in memory"
    if config.num_replicas > 1:
        return (
            f"nothing when one of {config.num_replicas} servers dies; "
            "when most of them lose power at once, what none had on its disk (sync_interval: 2 minutes by default)"
        )
    return (
        "what was not on its disk when the machine dies: up to 2 minutes, unless its sync_interval says otherwise "
        "(set sync_interval: always); nothing when only NATS does"
    )


def _limits(config: StreamConfig) -> str:
    """Those of a stream that somebody else has made may drop what a group has not read."""
    limits = []
    if config.max_age > 0:
        limits.append(f"max_age {config.max_age / SECOND:g} s")
    if config.discard == "old":
        counted = {"max_msgs": config.max_msgs, "max_bytes": config.max_bytes}
        limits += [f"{name} {number}" for name, number in counted.items() if number > 0]
    if config.max_msgs_per_subject > 0:
        limits.append(f"max_msgs_per_subject {config.max_msgs_per_subject}")
    if config.retention != "limits":
        limits.append(f"retention {config.retention}")
    return f"and what the stream drops by its own limits, read or not ({', '.join(limits)})" if limits else ""
