"""From a key and a suspect to a verdict.

questions.py     which texts to ask, so that asking them tells nothing about the key
suspects.py      whom to ask: a server, an encoder, a file of answers, any function
asking.py        asks, keeps every answer as it arrives, goes on after an interruption
answers.py       what was answered, with digests of every response
examination.py   answers beside questions, scored without a target by a statistic (decoy1.py, on clean_space.py)
decoy_test.py    the exact p-value of the true targets among all that might have been drawn
judging.py       each key's judgement, corrected for the keys and for the looks in ledger.py; verify, judge
verdict.py       what can be said, with its basis and its cautions; beside it paper_statistics.py and power.py
tracing.py       which tenant leaked
"""

from __future__ import annotations
