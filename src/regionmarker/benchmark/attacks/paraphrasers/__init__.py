"""What says the same in other words: the means of the paraphrasing attack.

registry.py                  a spec string such as ``"apertium:spa,cat"`` becomes a paraphraser
table.py                     paraphrases that were made beforehand
apertium.py                  round trips by rules, offline
nllb.py, dipper.py           neural models by name; seq2seq.py is what they have in common
chat.py                      any OpenAI-compatible chat model
"""

from __future__ import annotations

from regionmarker.benchmark.attacks.paraphrasers.registry import PARAPHRASERS, Paraphraser, load_paraphraser

__all__ = ["PARAPHRASERS", "Paraphraser", "load_paraphraser"]
