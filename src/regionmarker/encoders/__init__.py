"""Text in, embeddings out: a spec string, or any object with ``encode``, becomes an encoder.

    wordllama                         the embedded default
    sentence-transformers:NAME        NAME on the Hugging Face hub, or a folder; NAME#PROMPT puts a prompt before texts
    openai:URL#MODEL                  any OpenAI-compatible server
    onnx:FILE                         an exported model; FILE#TOKENIZER where it takes no texts

Another package adds its own by an entry point of the group ``regionmarker.encoders``: its name stands before the colon,
and it is called with what stands after it (as a classmethod ``from_spec(rest)`` would be).

    base.py                           what every encoder promises; objects and tables as encoders
    wordllama.py, sentence_transformers.py, openai.py, onnx.py
    http_client.py, http_messages.py  how a server is asked, and what it says
    cache.py                          vectors in a file: no text is embedded twice

Importing this package loads none of the models or clients: each comes with its first use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regionmarker.encoders.base import CheckedEncoder, ObjectEncoder, check_answer, check_texts
from regionmarker.encoders.cache import CachedEncoder, default_cache_path
from regionmarker.errors import InputError
from regionmarker.specs import Registry
from regionmarker.vectors import Encoder

__all__ = [
    "CachedEncoder",
    "CheckedEncoder",
    "ObjectEncoder",
    "check_answer",
    "check_texts",
    "default_cache_path",
    "known_encoders",
    "load_encoder",
]

ENCODERS = Registry(
    kind="encoder",
    group="regionmarker.encoders",
    built_in={
        "wordllama": "regionmarker.encoders.wordllama:WordLlamaEncoder",
        "sentence-transformers": "regionmarker.encoders.sentence_transformers:SentenceTransformersEncoder",
        "openai": "regionmarker.encoders.openai:OpenAIEncoder",
        "onnx": "regionmarker.encoders.onnx:OnnxEncoder",
    },
    forms={"sentence-transformers": ":NAME", "openai": ":URL#MODEL", "onnx": ":FILE"},
)


def known_encoders() -> list[str]:
    """Return what may stand before the colon of a spec: the built-in encoders, then those of other packages.

    Examples
    --------
    >>> known_encoders()[:3]
    ['wordllama', 'sentence-transformers', 'openai']
    """
    return ENCODERS.known()


def load_encoder(
    spec: object, *, name: str | None = None, cache: str | Path | bool = False, progress: bool = False, **options: Any
) -> Encoder:
    """Load an encoder by its spec, or make one of any object with ``encode(list[str])``.

    Parameters
    ----------
    spec
        ``"wordllama"``, ``"sentence-transformers:NAME"``, ``"openai:URL#MODEL"``, a spec of an installed plug-in, or an
        object.
    name
        What keys and caches shall remember an object by. A spec is its own name.
    cache
        A SQLite file in which every vector is kept, so that no text is embedded or paid for twice; True for the
        usual place (:func:`~regionmarker.encoders.cache.default_cache_path`).
    progress
        Draw a progress bar on stderr; it belongs to the cache and needs one.
    **options
        Passed to the encoder, such as ``batch_size``.

    Returns
    -------
    Encoder
        Its ``encode`` answers float32 rows of unit length, in the order of the texts.

    Examples
    --------
    >>> encoder = load_encoder("wordllama")
    >>> encoder.encode(["a text", "another"]).shape
    (2, 256)
    >>> load_encoder("word2vec")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: unknown encoder 'word2vec': give wordllama, sentence-transformers:NAME, ...
    """
    if progress and not cache:
        raise InputError("progress=True needs a cache, which draws it: give cache=True or a file")
    if isinstance(spec, str) and name is not None:
        raise InputError("name= is for objects: an encoder that is loaded by its spec has that for a name")
    encoder = _from_spec(spec, options) if isinstance(spec, str) else _from_object(spec, name, options)
    if cache:
        return CachedEncoder(encoder, None if cache is True else cache, progress=progress)
    return encoder


def _from_object(encoder: object, name: str | None, options: dict[str, Any]) -> CheckedEncoder | CachedEncoder:
    if options:
        raise InputError(f"an encoder that is an object takes no options, but {', '.join(sorted(options))} was given")
    if isinstance(encoder, CheckedEncoder | CachedEncoder) and name in (None, encoder.name):
        return encoder
    return ObjectEncoder(encoder, name=name)


def _from_spec(spec: str, options: dict[str, Any]) -> CheckedEncoder | CachedEncoder:
    encoder = ENCODERS.load(spec, **options)
    if isinstance(encoder, CheckedEncoder | CachedEncoder):
        return encoder
    return ObjectEncoder(encoder, name=None if getattr(encoder, "name", None) else spec)
