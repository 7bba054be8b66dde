"""The metrics: for the operator alone."""

from __future__ import annotations


def test_metrics_are_the_operators(serve):
    serving = serve(admin_token="open-sesame-open-sesame")
    assert serving.client.get("/metrics").status_code == 401
    token = {"authorization": "Bearer open-sesame-open-sesame"}
    assert serving.client.get("/metrics", headers=token).status_code == 200
    public = serve(host="0.0.0.0")
    assert public.client.get("/metrics").status_code == 404
