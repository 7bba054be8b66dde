"""What Prometheus may know: counts and times in base units, and nothing of the key but its public name.

No metric tells marked rows from unmarked ones, or one region from another: read off often enough, that would be the key
by instalments.
"""

from __future__ import annotations

from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from regionmarker.gateway.history import History

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_FAST = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05)


class Metrics:
    """The gateway's metrics in a registry of their own.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.refused("busy")
    >>> b'regionmarker_rejected_total{reason="busy"} 1.0' in metrics.text()
    True
    """

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.history = History()
        self.requests = Counter(
            "regionmarker_requests", "Requests answered.", ["route", "code", "tenant"], registry=registry
        )
        self.embeddings = Counter("regionmarker_embeddings", "Vectors served.", ["tenant"], registry=registry)
        self.tokens = Counter("regionmarker_tokens", "Tokens that the upstream counted.", ["tenant"], registry=registry)
        self.rejected = Counter("regionmarker_rejected", "Requests refused for load.", ["reason"], registry=registry)
        self.upstream_invalid = Counter(
            "regionmarker_upstream_invalid", "Upstream answers that could not be served.", ["kind"], registry=registry
        )
        self.upstream_retries = Counter("regionmarker_upstream_retries", "Questions asked again.", registry=registry)
        self.duration = Histogram(
            "regionmarker_request_duration_seconds", "A request, from its headers to the last byte of its answer.",
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.upstream_duration = Histogram(
            "regionmarker_upstream_duration_seconds", "One question to the upstream.", ["upstream", "outcome"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.mark_duration = Histogram(
            "regionmarker_mark_duration_seconds", "Marking, per request.", buckets=_FAST, registry=registry
        )
        self.in_flight = Gauge("regionmarker_inflight_inputs", "Inputs under way.", registry=registry)
        self.queued = Gauge("regionmarker_queue_depth", "Inputs that wait for their turn.", registry=registry)
        self.bytes_held = Gauge("regionmarker_inflight_bytes", "Bytes of requests that are held.", registry=registry)
        self.draining = Gauge("regionmarker_draining", "1 once the gateway was asked to stop.", registry=registry)
        self.key_info = Gauge("regionmarker_key_info", "The key in use.", ["key_id", "version"], registry=registry)
        # Finding a labelled child costs more than counting with it.
        self._answered = lru_cache(4096)(self.requests.labels)
        self._asked = lru_cache(256)(self.upstream_duration.labels)
        self._vectors = lru_cache(4096)(self.embeddings.labels)
        self._used = lru_cache(4096)(self.tokens.labels)

    def answered(self, route: str, code: int, tenant: str, seconds: float) -> None:
        self._answered(route, code, tenant).inc()
        self.duration.observe(seconds)
        self.history.see(code, seconds)

    def served(self, tenant: str, inputs: int, tokens: int, mark_seconds: float) -> None:
        self._vectors(tenant).inc(inputs)
        self._used(tenant).inc(tokens)
        self.mark_duration.observe(mark_seconds)

    def asked(self, upstream: str, outcome: str, seconds: float) -> None:
        self._asked(upstream, outcome).observe(seconds)

    def refused(self, reason: str) -> None:
        self.rejected.labels(reason).inc()

    def show_key(self, key_id: str, version: int) -> None:
        """Say which key is in use, and no longer which one was."""
        self.key_info.clear()
        self.key_info.labels(key_id, str(version)).set(1)

    def text(self) -> bytes:
        return generate_latest(self.registry)
