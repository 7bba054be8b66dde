"""OpenTelemetry, for those who have a collector: spans and metrics by the conventions for generative AI.

The conventions are still in development, so their names stand here and nowhere else. Content is never captured: no
input, no vector, no API key, no ``user``. Exporters are chosen by OpenTelemetry's own environment variables
(``OTEL_TRACES_EXPORTER``, ``OTEL_METRICS_EXPORTER``, ``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_SERVICE_NAME``).
"""

from __future__ import annotations

import os
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from starlette.middleware import Middleware

from regionmarker._version import __version__
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.gateway.dialects.openapi import DIALECTS
from regionmarker.gateway.metrics import Metrics

try:
    from opentelemetry import propagate, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ImportError:
    raise MissingExtraError.for_module("opentelemetry-sdk", "telemetry") from None

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPERATION = "gen_ai.operation.name"
EMBEDDINGS = "embeddings"
MODEL = "gen_ai.request.model"
STATUS = "http.response.status_code"
ERROR = "error.type"

_NAME = "regionmarker"
_ROUTES = frozenset(dialect.route for dialect in DIALECTS)
_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576]


class Telemetry:
    """Tracer and instruments of one gateway.

    Parameters
    ----------
    tracers, meters
        OpenTelemetry's providers.
    model
        The model's name for clients; it can be set once it is known.
    """

    def __init__(self, tracers: TracerProvider, meters: MeterProvider, model: str = "") -> None:
        self._providers = (tracers, meters)
        self.model = model
        self.tracer = tracers.get_tracer(_NAME, __version__)
        meter = meters.get_meter(_NAME, __version__)
        self.server_duration = meter.create_histogram(
            "gen_ai.server.request.duration", "s", "A request.", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self.client_duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "A question to the upstream.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )  # fmt: skip
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of a request.", explicit_bucket_boundaries_advisory=_TOKENS
        )

    @classmethod
    def from_environment(cls) -> Telemetry:
        """Make providers with the exporters that the environment names."""
        resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "regionmarker-gateway")})
        tracers = TracerProvider(resource=resource)
        spans = _exporter("traces")
        if spans is not None:
            tracers.add_span_processor(BatchSpanProcessor(spans))
        values = _exporter("metrics")
        readers = [] if values is None else [PeriodicExportingMetricReader(values)]
        return cls(tracers, MeterProvider(readers, resource))

    @property
    def attributes(self) -> dict[str, Any]:
        return {OPERATION: EMBEDDINGS, MODEL: self.model}

    def metrics(self) -> TelemetryMetrics:
        return TelemetryMetrics(self)

    def middleware(self) -> Middleware:
        return Middleware(Tracing, telemetry=self)

    def close(self) -> None:
        for provider in self._providers:
            provider.shutdown()


class TelemetryMetrics(Metrics):
    """The gateway's metrics, sent to OpenTelemetry as well."""

    def __init__(self, telemetry: Telemetry) -> None:
        super().__init__()
        self._telemetry = telemetry

    def answered(self, route: str, code: int, tenant: str, seconds: float) -> None:
        super().answered(route, code, tenant, seconds)
        attributes = {**self._telemetry.attributes, STATUS: code, **({ERROR: str(code)} if code >= 500 else {})}
        self._telemetry.server_duration.record(seconds, attributes)

    def served(self, tenant: str, inputs: int, tokens: int, mark_seconds: float) -> None:
        super().served(tenant, inputs, tokens, mark_seconds)
        self._telemetry.tokens.record(tokens, {**self._telemetry.attributes, "gen_ai.token.type": "input"})

    def asked(self, upstream: str, outcome: str, seconds: float) -> None:
        """Count one question to the upstream, and draw it into the request's trace."""
        super().asked(upstream, outcome, seconds)
        telemetry = self._telemetry
        failure = {} if outcome == "ok" else {ERROR: outcome}
        attributes = {**telemetry.attributes, "gen_ai.provider.name": upstream, **failure}
        telemetry.client_duration.record(seconds, attributes)
        now = time.time_ns()
        span = telemetry.tracer.start_span(
            f"{EMBEDDINGS} {telemetry.model}", kind=trace.SpanKind.CLIENT, attributes=attributes,
            start_time=now - round(seconds * 1e9),
        )  # fmt: skip
        if outcome != "ok":
            span.set_status(trace.StatusCode.ERROR)
        span.end(now)


class Tracing:
    """Middleware that gives every request for embeddings a span; takes up the trace that the client began."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app, self._telemetry = app, telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in _ROUTES:
            await self._app(scope, receive, send)
            return
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        trail = {name: carrier[name] for name in ("traceparent", "tracestate") if name in carrier}
        telemetry = self._telemetry
        with telemetry.tracer.start_as_current_span(
            f"{EMBEDDINGS} {telemetry.model}",
            context=propagate.extract(trail),
            kind=trace.SpanKind.SERVER,
            attributes={**telemetry.attributes, "http.request.method": scope["method"], "url.path": scope["path"]},
            record_exception=False,  # an exception's message may repeat what it was about
        ) as span:

            async def noting(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute(STATUS, message["status"])
                    if message["status"] >= 500:
                        span.set_attribute(ERROR, str(message["status"]))
                        span.set_status(trace.StatusCode.ERROR)
                await send(message)

            await self._app(scope, receive, noting)


def _exporter(signal: str) -> Any:
    """Load the exporter that ``OTEL_<SIGNAL>_EXPORTER`` names; "none" for none."""
    name = os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp")
    if name == "none":
        return None
    name = "otlp_proto_http" if name == "otlp" else name
    for point in entry_points(group=f"opentelemetry_{signal}_exporter", name=name):
        return point.load()()
    raise InputError(
        f"OpenTelemetry has no {signal} exporter {name!r}: pip install opentelemetry-exporter-otlp-proto-http, "
        f"or set OTEL_{signal.upper()}_EXPORTER to console or none"
    )
