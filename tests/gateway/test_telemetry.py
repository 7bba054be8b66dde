"""OpenTelemetry: the conventions' names, the client's trace, and no content."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the package opentelemetry-sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from tests.support.running import running

from regionmarker.errors import InputError
from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.telemetry import Telemetry
from regionmarker.keys.files import save_serving

TRACE = "0af7651916cd43dd8448eb211c80319c"
CANARY = "a canary text that nobody may see"


@pytest.fixture
def told(tmp_path, real_marker, monkeypatch):
    """Run two requests through a gateway with telemetry; return its spans and metrics."""
    spans, values = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = Telemetry(tracers, MeterProvider([values]))
    collected = []
    monkeypatch.setattr(telemetry, "close", lambda: collected.append(values.get_metrics_data()))
    monkeypatch.setattr(Telemetry, "from_environment", lambda: telemetry)
    path = tmp_path / "serving.rmkey"
    save_serving(path, real_marker.key_.serving(), None)
    with running(open_gateway(Settings(path, telemetry=True))) as house:
        question = {"model": "wordllama", "input": [CANARY, "another"], "user": "canary-user"}
        trail = f"00-{TRACE}-b7ad6b7169203331-01"
        assert house.ask("/v1/embeddings", token="canary-key", body=question, traceparent=trail)[0] == 200
        assert house.ask("/v1/embeddings", body={"model": "other", "input": "x"})[0] == 404
        assert house.ask("/livez")[0] == 200
    (data,) = collected  # sent when the gateway stopped
    return spans.get_finished_spans(), data


def test_a_request_is_a_span_in_the_clients_trace_and_so_is_its_question(told):
    spans, _ = told
    served = [span for span in spans if span.kind is SpanKind.SERVER]
    assert [span.attributes["http.response.status_code"] for span in served] == [200, 404]
    assert f"{served[0].context.trace_id:032x}" == TRACE
    (asked,) = [span for span in spans if span.parent and span.parent.span_id == served[0].context.span_id]
    assert asked.kind is SpanKind.CLIENT
    assert dict(asked.attributes) == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": "wordllama",
        "gen_ai.provider.name": "encoder",
    }
    assert asked.name == served[0].name == "embeddings wordllama"


def test_the_metrics_have_the_conventions_names(told):
    _, data = told
    found = {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {name: metric.unit for name, metric in found.items()} == {
        "gen_ai.server.request.duration": "s",
        "gen_ai.client.operation.duration": "s",
        "gen_ai.client.token.usage": "{token}",
    }
    points = found["gen_ai.server.request.duration"].data.data_points
    assert {(point.attributes["http.response.status_code"], point.count) for point in points} == {(200, 1), (404, 1)}


def test_no_content_is_captured(told):
    spans, data = told
    everything = " ".join(span.to_json() for span in spans) + data.to_json()
    assert "embeddings wordllama" in everything
    for canary in (CANARY, "canary-user", "canary-key"):
        assert canary not in everything


def test_the_environment_chooses_the_exporters(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    Telemetry.from_environment().close()
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
    with pytest.raises(InputError, match="no traces exporter 'carrier-pigeon': pip install opentelemetry-exporter"):
        Telemetry.from_environment()
