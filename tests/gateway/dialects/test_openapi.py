"""The OpenAPI document is true: cases made from it find no server error and no answer of another shape.

``REGIONMARKER_FUZZ_CASES`` asks for more cases an operation than the suite runs.
"""

from __future__ import annotations

import os

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.core.parameters import ParameterLocation
from tests.support.gateways import MODEL, PATIENCE, WIDTH, eventually

from regionmarker.gateway.dialects.openapi import document
from regionmarker.gateway.tenants import OpenLookup, Tenant


def without_large_arrays(part):
    """The document without ``maxItems``: requests at those limits are large, slow to make, and tested by hand."""
    if isinstance(part, dict):
        return {name: without_large_arrays(value) for name, value in part.items() if name != "maxItems"}
    return [without_large_arrays(one) for one in part] if isinstance(part, list) else part


def wrong_requests_are_refused(ctx, response, case):
    """A body that breaks the schema is the client's mistake; headers are ours."""
    body = case.meta.components.get(ParameterLocation.BODY)
    if body is not None and body.mode.is_negative:
        assert 400 <= response.status_code < 500


schema = schemathesis.openapi.from_dict(without_large_arrays(document([MODEL], WIDTH)))
CASES = int(os.environ.get("REGIONMARKER_FUZZ_CASES", "30"))
CHECKS = [
    checks.not_a_server_error,
    schemathesis.checks.CHECKS.get_one("status_code_conformance"),
    schemathesis.checks.CHECKS.get_one("content_type_conformance"),
    schemathesis.checks.CHECKS.get_one("response_schema_conformance"),
    wrong_requests_are_refused,
]


class Lookup(OpenLookup):
    """Knows one key: a request without it is as wrong as any other."""

    async def find(self, api_key):
        return Tenant("") if api_key == "fuzz" else None


@pytest.fixture(scope="module")
def fuzzed(module_serving):
    serving, _ = module_serving(lookup=Lookup())
    return serving


def test_the_document_is_served(fuzzed):
    assert httpx2.get(f"{fuzzed.url}/openapi.json").json() == document([MODEL], WIDTH)


@schema.parametrize()
@settings(max_examples=CASES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_every_answer_keeps_the_contract(case, fuzzed):
    headers = {"authorization": "Bearer fuzz"}
    case.call_and_validate(base_url=fuzzed.url, headers=headers, timeout=PATIENCE, checks=CHECKS)


def test_nothing_is_left_over(fuzzed):
    eventually(fuzzed.is_at_rest, "rest")
