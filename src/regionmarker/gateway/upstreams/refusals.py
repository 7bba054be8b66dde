"""What an upstream's refusal means to our client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regionmarker.encoders.wire import redact, seconds_to_wait, server_message
from regionmarker.gateway.failures import Failure, retry_headers
from regionmarker.gateway.upstreams.patience import TryAgain

_NO_RETRY = [(b"x-should-retry", b"false")]
_LONGEST_WAIT = 120.0  # seconds that a client may be told to wait
_CLIENTS_FAULT = frozenset({400, 413, 422})


def refusal(status: int, headers: Mapping[str, str], body: bytes, api_key: str, inputs: Sequence[object]) -> Failure:
    """Translate a response other than 200: OpenAI's shape, TEI's flat one, FastAPI's, or HTML.

    Nothing of the inputs and of the upstream's API key is passed on.

    Examples
    --------
    >>> failure = refusal(400, {}, b'{"error": {"message": "input is too long"}}', "", ["a"])
    >>> failure.status, failure.message
    (400, 'the upstream refused the request: input is too long')
    >>> refusal(401, {}, b"", "", ["a"]).status
    502
    """
    if status in _CLIENTS_FAULT:
        texts = [one for one in inputs if isinstance(one, str)]
        said = redact(server_message(body), api_key, texts) or "no message"
        return Failure(
            400, "upstream_refused", f"the upstream refused the request: {said}", param="input", kind=str(status)
        )
    if status == 429:
        return _overloaded(429, "upstream_rate_limited", "the upstream has reached its limit", headers, body)
    if status == 503:
        return _overloaded(503, "upstream_overloaded", "the upstream is overloaded", headers, body)
    if status in (408, 409, 424, 500, 502, 504):
        return TryAgain(
            502, "upstream_error", f"the upstream failed with {status}", headers=_NO_RETRY, kind=str(status)
        )
    what = f"the upstream answered {status}, which the operator of this gateway has to look at"
    return Failure(502, "upstream_error", what, headers=_NO_RETRY, kind=str(status))


def _overloaded(status: int, code: str, message: str, headers: Mapping[str, str], body: bytes) -> Failure:
    wait = seconds_to_wait(headers)
    told = retry_headers(1.0 if wait is None else min(wait, _LONGEST_WAIT))
    if b"insufficient_quota" in body:  # waiting does not fill an account
        return Failure(status, code, message, headers=_NO_RETRY, kind=str(status))
    return TryAgain(status, code, message, headers=told, kind=str(status)).after(wait)


def is_too_large(failure: Failure) -> bool:
    """Tell whether the upstream would take fewer inputs at a time: TEI takes 32, and says so with 413 or 422."""
    return failure.code == "upstream_refused" and ("batch" in failure.message.lower() or failure.kind == "413")


def wants_no_base64(failure: Failure) -> bool:
    """Tell whether the upstream does not know base64, or not even the field."""
    return failure.code == "upstream_refused" and "encoding_format" in failure.message
