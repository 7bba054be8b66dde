"""Chat models: any OpenAI-compatible server, asked as the paper asks gpt-4o-mini, and a small one from a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from regionmarker.benchmark.attacks.paraphrasers import different
from regionmarker.encoders.base import check_texts
from regionmarker.encoders.http_client import Endpoint, EndpointError
from regionmarker.encoders.http_messages import base_of, endpoint_of
from regionmarker.errors import InputError, MissingExtraError, OutsideError

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


# ---- without a server

_TASK = "You rewrite a text in different words and keep its meaning. Answer with the rewritten text alone."
_EXAMPLES = (
    ("the acting is wooden but the story moves along", "The actors are stiff, yet the plot keeps going."),
    ("City council votes to raise parking fees downtown", "Parking in the centre gets dearer, the council decides."),
)


class LocalChatParaphraser:
    """A chat model of a GGUF file, run in this process by llama.cpp (the package xllamacpp).

    A small model needs to be shown what is wanted, so two examples stand before each text.

    Parameters
    ----------
    file
        The GGUF file, or a folder with one in it.
    temperature, tokens, threads, seed
        What is drawn, how long an answer may be, and how many threads it has.

    Examples
    --------
    >>> LocalChatParaphraser("models/qwen/model.gguf").name
    'gguf:models/qwen/model.gguf'
    """

    def __init__(
        self, file: str, *, temperature: float = 0.7, tokens: int = 96, threads: int = 1, seed: int = 0
    ) -> None:
        self.name, self._file = f"gguf:{file}", Path(file).expanduser()
        self.temperature, self.tokens, self.threads, self.seed = temperature, tokens, threads, seed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        if not rest:
            raise InputError("name the model: gguf:FILE, such as gguf:models/qwen2.5-1.5b.gguf")
        return cls(rest)

    @cached_property
    def _model(self) -> Any:
        found = sorted(self._file.glob("*.gguf")) if self._file.is_dir() else [self._file]
        if len(found) != 1 or not found[0].is_file():
            raise InputError(f"there is no GGUF file {self._file}: give a file, or a folder with one in it")
        if find_spec("xllamacpp") is None:
            raise MissingExtraError.for_module("xllamacpp", "gguf")
        import xllamacpp

        settings = xllamacpp.CommonParams()
        settings.model.path, settings.n_ctx, settings.cpuparams.n_threads = str(found[0]), 2048, self.threads
        settings.verbosity = -1
        return xllamacpp.Server(settings)

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        """Ask once and again until there are enough different answers, twice as often as are wanted at the most."""
        return [self._rewritings(" ".join(text.split()), most) for text in check_texts(list(texts))]

    def _rewritings(self, text: str, most: int) -> list[str]:
        found: list[str] = []
        for place in range(2 * most):
            said = self._ask(text, self.seed + place).strip().strip('"')
            found = different([*found, said], text)
            if len(found) >= most:
                break
        return found

    def _ask(self, text: str, seed: int) -> str:
        messages = [{"role": "system", "content": _TASK}]
        for before, after in _EXAMPLES:
            messages += [{"role": "user", "content": before}, {"role": "assistant", "content": after}]
        question = {
            "messages": [*messages, {"role": "user", "content": text}],
            "max_tokens": self.tokens, "temperature": self.temperature, "top_p": 0.9, "seed": seed,
        }  # fmt: skip
        answer = self._model.handle_chat_completions(question)
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        return next(iter(_contents(body, self.name)), "")
