"""The numbers as Prometheus reads them. prometheus-client writes the text, so it is needed here and nowhere else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.kernel.errors import UsageError
from holdfast.observe.metrics.cells import key_of
from holdfast.observe.metrics.kinds import DECLARED, Histogram, Metric

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

Labels = tuple[str, ...]


class Collector(Protocol):
    """What prometheus-client collects from: a metric of its own, or a whole registry."""

    def collect(self) -> Iterable[Any]: ...


class Numbers:
    """All numbers of one scrape, by metric."""

    def __init__(
        self, summed: Mapping[str, float], fleet: Sequence[tuple[str, Sequence[str], float]]
    ) -> None:
        self._plain: dict[str, dict[Labels, float]] = defaultdict(dict)
        self._buckets: dict[str, dict[Labels, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        self._sums: dict[str, dict[Labels, float]] = defaultdict(dict)
        for name, number in summed.items():
            self._take(key_of(name), number)
        for metric, labels, number in fleet:
            self._plain[metric][tuple(labels)] = number

    def _take(self, key: tuple[str, ...], number: float) -> None:
        match key:
            case ("b", name, end, *labels):
                self._buckets[name][tuple(labels)][end] = number
            case ("s", name, *labels):
                self._sums[name][tuple(labels)] = number
            case (_, name, *labels):
                self._plain[name][tuple(labels)] = number

    def plain(self, metric: Metric) -> dict[Labels, float]:
        return self._plain.get(metric.name, {})

    def times(self, metric: Histogram) -> Iterator[tuple[Labels, list[tuple[str, float]], float]]:
        """Labels, buckets as Prometheus adds them up, and the sum."""
        for labels, counts in self._buckets.get(metric.name, {}).items():
            so_far, buckets = 0.0, []
            for end in metric.ends:
                so_far += counts.get(end, 0.0)
                buckets.append((end, so_far))
            yield labels, buckets, self._sums.get(metric.name, {}).get(labels, 0.0)


def exposition(numbers: Numbers, more: Sequence[Collector], accept: str) -> tuple[bytes, str]:
    """The text that the asker can read, and its type."""
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415  an extra
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415
    except ImportError:
        raise UsageError("Metrics need prometheus-client: pip install 'holdfast[metrics]'.") from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Ours(numbers))
    for collector in more:
        registry.register(collector)
    encode, kind = choose_encoder(accept)
    return encode(registry), kind


class _Ours:
    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Family]:
        for metric in list(DECLARED.values()):
            yield family_of(metric, self._numbers)


def family_of(metric: Metric, numbers: Numbers) -> Family:
    from prometheus_client.core import (  # noqa: PLC0415  an extra
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    if isinstance(metric, Histogram):
        times = HistogramMetricFamily(metric.name, metric.about, labels=metric.labels)
        for labels, buckets, total in numbers.times(metric):
            if len(labels) == len(metric.labels):
                times.add_metric(labels, buckets, total)
        return times
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.about, labels=metric.labels)
    for labels, number in numbers.plain(metric).items():
        if len(labels) == len(metric.labels):
            family.add_metric(labels, number)
    return family
