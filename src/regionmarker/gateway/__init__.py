"""The OpenAI-compatible service that marks what an upstream returns.

The files stand in the order of a request: settings, tenants, served_key; app, reception, requests, admission;
upstreams, answers, marking, responses; failures, metrics, logs, openapi, health; server.
"""
