"""Text in, embeddings out.

    registry.py                  a spec string, or any object with ``encode``, becomes an encoder
    checked.py                   what every encoder promises, checked in one place
    wordllama.py                 the embedded default: no torch, no network
    sentence_transformers.py     models of the Hugging Face hub, or of a folder
    openai.py, wire.py           any OpenAI-compatible server
    cache.py, store.py           a wrapper that never embeds a text twice

Importing this package loads none of the models or clients: each comes with its first use.
"""

from __future__ import annotations

from regionmarker.encoders.cache import CachedEncoder, default_cache_path
from regionmarker.encoders.checked import CheckedEncoder, ObjectEncoder, check_answer, check_texts
from regionmarker.encoders.registry import known_encoders, load_encoder

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
