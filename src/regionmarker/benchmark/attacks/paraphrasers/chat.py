"""Any OpenAI-compatible chat model, asked as the paper asks gpt-4o-mini."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

from regionmarker.encoders.base import check_texts
from regionmarker.encoders.http_client import Endpoint, EndpointError
from regionmarker.encoders.http_messages import base_of, endpoint_of
from regionmarker.errors import InputError, OutsideError

PROMPT = "You are a helpful assistant to rewrite the text. Rewrite the following text:"
"""The paper's."""

_PATH = "/chat/completions"


class ChatParaphraser:
    """Asks a chat model to rewrite each text.

    Several answers come from one question where the server knows ``n``; where it gives fewer, it is asked again, at
    most as often as there are answers to get.

    Parameters
    ----------
    url, model
        The server's base address, with or without ``/v1``, and the model's name there.
    temperature, tokens
        Paper: 0.7, and at most 1,000 tokens per answer.
    options
        Of :class:`~regionmarker.encoders.http_client.Endpoint`: ``api_key``, ``timeout``, ``transport``, ...

    Examples
    --------
    >>> ChatParaphraser.from_spec("http://localhost:8000#small").name
    'chat:http://localhost:8000/v1#small'
    """

    def __init__(self, url: str, model: str, *, temperature: float = 0.7, tokens: int = 1000, **options: Any) -> None:
        if not 0 <= temperature <= 2 or tokens < 1:
            raise InputError(f"temperature must be 0 to 2 and tokens at least 1, not {temperature} and {tokens}")
        self.model, self.temperature, self.tokens = model, temperature, tokens
        address = endpoint_of(url, _PATH)
        self.name = f"chat:{base_of(address, _PATH)}#{model}"
        self._server = Endpoint(address, self.name, **options)
        self._asks_for_several = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        url, _, model = rest.partition("#")
        if not url or not model:
            raise InputError("write chat:URL#MODEL, such as chat:https://api.openai.com/v1#gpt-4o-mini")
        return cls(url, model)

    def close(self) -> None:
        """Close the connections; the garbage collector does it as well."""
        self._server.close()

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        return [self._rewritings(text, most) for text in check_texts(list(texts))]

    def _rewritings(self, text: str, most: int) -> list[str]:
        found: list[str] = []
        for _ in range(most):
            found += self._ask(text, most - len(found))
            if len(found) >= most:
                break
        return found[:most]

    def _ask(self, text: str, count: int) -> list[str]:
        question: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "user", "content": f"{PROMPT}\n{text}"}],
            "temperature": self.temperature,
            "max_tokens": self.tokens,
        }
        if count > 1 and self._asks_for_several:
            question["n"] = count
        try:
            return _contents(self._server.ask(question, [text]), self.name)
        except EndpointError as error:
            if error.status not in (400, 422) or "n" not in question:
                raise
            self._asks_for_several = False  # this server knows only one answer to a question
            return self._ask(text, count)


def _contents(body: bytes, source: str) -> list[str]:
    """Read the answers of a response; one that is empty is left out."""
    try:
        answer = json.loads(body)
        contents = [choice["message"]["content"] for choice in answer["choices"]]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise OutsideError(f"{source} gave an answer without choices in it ({len(body)} bytes)") from None
    return [content.strip() for content in contents if isinstance(content, str) and content.strip()]
