"""Pages and methods other than embeddings."""

from __future__ import annotations

from tests.support.gateways import MODEL, error_of


def test_other_pages_and_methods_have_the_same_shape(serve):
    client = serve().client
    error_of(client.get("/v1/nothing"), 404, "not_found")
    response = client.get("/v1/embeddings")
    error_of(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"
    error_of(client.get("/v1/models/another"), 404, "model_not_found")
    assert client.get("/v1/models").json() == {
        "object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "system"}],
    }  # fmt: skip
    assert client.get(f"/v1/models/{MODEL}").json()["id"] == MODEL
