"""What a client reads when something is wrong: one shape, made in one place.

Every error of the gateway has OpenAI's body, ``{"error": {"message", "type", "param", "code"}}`` with all four keys,
because clients parse it. Messages hold no text, no vector and no key.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

Headers = list[tuple[bytes, bytes]]

_TYPES = {401: "invalid_request_error", 403: "invalid_request_error", 404: "invalid_request_error", 429: "requests"}


class ErrorDetails(msgspec.Struct, forbid_unknown_fields=True):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(msgspec.Struct, forbid_unknown_fields=True):
    """The body of every answer but 200."""

    error: ErrorDetails


def error_body(message: str, *, status: int, code: str | None = None, param: str | None = None) -> bytes:
    """Return the body of an error.

    Examples
    --------
    >>> error_body("no such model", status=404, code="model_not_found", param="model")
    b'{"error":{"message":"no such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}'
    """
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return msgspec.json.encode(Error(ErrorDetails(message, kind, param, code)))


def retry_headers(seconds: float) -> Headers:
    """Say when to come back: milliseconds for those who read them, whole seconds for the others.

    Examples
    --------
    >>> retry_headers(0.25)
    [(b'retry-after-ms', b'250'), (b'retry-after', b'1')]
    """
    milliseconds = max(1, round(seconds * 1000))
    return [(b"retry-after-ms", b"%d" % milliseconds), (b"retry-after", b"%d" % -(-milliseconds // 1000))]


class ApiError(Exception):
    """An answer other than 200.

    Parameters
    ----------
    status, code, message, param
        What the client reads.
    headers
        Added to the answer.
    kind
        What a metric counts it under: the reason of a refusal, what is wrong with an upstream's answer.

    Examples
    --------
    >>> ApiError(404, "model_not_found", "no such model", param="model").status
    404
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
        kind: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers: Headers = list(headers)
        self.kind = kind

    def body(self) -> bytes:
        return error_body(self.message, status=self.status, code=self.code, param=self.param)


def bad_request(message: str, param: str | None = None, *, code: str = "invalid_value") -> ApiError:
    """Return the error of a request that cannot be understood.

    Examples
    --------
    >>> bad_request("input is empty", "input").status
    400
    """
    return ApiError(400, code, message, param=param)


def invalid_answer(kind: str, message: str) -> ApiError:
    """Return the error of an upstream whose answer cannot be used: nothing of it is served.

    Examples
    --------
    >>> invalid_answer("count", "the upstream gave 1 vector for 2 inputs").code
    'upstream_invalid_response'
    """
    # A client's own retries would not mend it, and would multiply with ours.
    return ApiError(502, "upstream_invalid_response", message, headers=[(b"x-should-retry", b"false")], kind=kind)
