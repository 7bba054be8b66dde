"""The body of ``POST /v1/embeddings``: read, checked and told what is wrong with it, exactly as OpenAI has it.

``[1, 2, 3]`` is one document in tokens, ``["a", "b"]`` are two in words, ``[[1], [2]]`` two in tokens; a mixed list is
an error, and so is a field that nobody knows: dropping it in silence would be worse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from regionmarker.gateway.failures import Failure, bad_request
from regionmarker.gateway.settings import MOST_INPUTS, MOST_TOKENS, MOST_TOKENS_IN_ALL

Token = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_PARAM = re.compile(r"at `\$\.?(\w+)")
_UNKNOWN = re.compile(r"unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"missing required field `(\w+)`")


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    input: str | list[str | Token | list[Token]]
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET
    user: str | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Body)


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """What a client asks, in one form whatever form it came in.

    Attributes
    ----------
    inputs
        Texts, or lists of tokens.
    in_tokens
        Whether they are lists of tokens.
    base64
        Whether the answer's vectors are base64.
    """

    inputs: list[str] | list[list[int]]
    in_tokens: bool
    model: str
    base64: bool
    dimensions: int | None
    user: str | None

    def __len__(self) -> int:
        return len(self.inputs)


def read_question(body: bytes) -> Question:
    """Read and check a request's body.

    Examples
    --------
    >>> question = read_question(b'{"model": "m", "input": [1, 2, 3]}')
    >>> question.inputs, question.in_tokens, question.base64
    ([[1, 2, 3]], True, False)
    >>> read_question(b'{"model": "m", "input": ["a", 1]}')
    Traceback (most recent call last):
    ...
    regionmarker.gateway.failures.Failure: 'input' must be a string, or a list of strings, tokens or ...
    """
    try:
        asked = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request("the body of the request is not valid JSON", code="invalid_json") from None
    inputs, in_tokens = _inputs(asked.input)
    return Question(
        inputs=inputs,
        in_tokens=in_tokens,
        model=asked.model,
        base64=asked.encoding_format == "base64",
        dimensions=None if asked.dimensions is msgspec.UNSET else asked.dimensions,
        user=None if asked.user is msgspec.UNSET else asked.user,
    )


def _inputs(given: str | list[str | int | list[int]]) -> tuple[list[str] | list[list[int]], bool]:
    """Return the inputs as a list of texts or a list of token lists, and which of the two."""
    if isinstance(given, str):
        given = [given]
    kinds = set(map(type, given))
    if len(kinds) != 1:
        if kinds:
            raise bad_request(
                "'input' must be a string, or a list of strings, tokens or lists of tokens; it mixes them", "input"
            )
        raise bad_request("'input' must not be empty", "input")
    if kinds == {int}:
        given = [given]  # type: ignore[list-item]
    if len(given) > MOST_INPUTS:
        raise bad_request(f"'input' must hold at most {MOST_INPUTS} inputs, but holds {len(given)}", "input")
    if not all(given):
        raise bad_request(f"'input[{[bool(one) for one in given].index(False)}]' must not be empty", "input")
    if kinds == {str}:
        return given, False  # type: ignore[return-value]
    _check_tokens(given)  # type: ignore[arg-type]
    return given, True  # type: ignore[return-value]


def _check_tokens(inputs: list[list[int]]) -> None:
    lengths = [len(tokens) for tokens in inputs]
    longest = max(lengths)
    if longest > MOST_TOKENS:
        where = lengths.index(longest)
        raise bad_request(f"'input[{where}]' must have at most {MOST_TOKENS} tokens, but has {longest}", "input")
    if sum(lengths) > MOST_TOKENS_IN_ALL:
        raise bad_request(
            f"'input' must have at most {MOST_TOKENS_IN_ALL} tokens in all, but has {sum(lengths)}", "input"
        )


def _explain(complaint: str) -> Failure:
    """Put a complaint of the decoder into OpenAI's words; it names places and types, never values."""
    if missing := _MISSING.search(complaint):
        return bad_request(
            f"you must provide the parameter '{missing[1]}'", missing[1], code="missing_required_parameter"
        )
    if unknown := _UNKNOWN.search(complaint):
        name = unknown[1][:64]
        return bad_request(f"unrecognised request argument supplied: {name}", name, code="unknown_parameter")
    param = _PARAM.search(complaint)
    if param is None:
        return bad_request("the body of the request must be a JSON object", code="invalid_json")
    if param[1] == "encoding_format":
        return bad_request("'encoding_format' must be 'float' or 'base64'", param[1])
    plain = complaint.partition(" - at ")[0].replace("`", "'")
    return bad_request(f"'{param[1]}' cannot be used: {plain[:1].lower()}{plain[1:]}", param[1], code="invalid_type")
