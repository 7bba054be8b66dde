"""The service, OpenAI-compatible first of all, that marks what an upstream returns.

In the order of a request:

server, app        the process and its routes
embeddings         a request for embeddings, from its headers to the last byte of its answer
tenants            who is asking
rate_limit         how often
dialects           the request read, the answer written
admission          whose turn it is
served_key         the key in use
upstreams          where clean vectors come from
marking            clean rows in, the rows to serve out

``gateway`` builds all of it from ``settings``; ``drift``, ``console``, ``metrics``, ``telemetry`` and ``logs`` watch.
"""
