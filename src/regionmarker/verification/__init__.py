"""From a key and a suspect to a verdict.

questions.py     which texts to ask, so that asking them tells nothing about the key
suspects.py      whom to ask: a server, an encoder, a file of answers, any function
asking.py        asks, keeps every answer as it arrives, goes on after an interruption
answers.py       what was answered, with digests of every response
"""

from __future__ import annotations
