"""Fuzzing with coverage: what a stranger can hand in is mutated towards code that nothing has reached yet.

targets.py       one function of bytes for each thing that is read
json_changes.py  changes that leave JSON what it is
__main__.py      the long run: python -m tests.fuzz TARGET, by way of atheris
corpora/         small inputs that reached something new, from which every run starts
test_fuzz.py     the short run of the test suite
"""
