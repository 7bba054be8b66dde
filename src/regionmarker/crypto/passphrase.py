"""Passphrases that a person chooses: refused where one is made, if it could be guessed; never where one is used.

Whoever has a key file can try passphrases on it at home, as long as they like. Argon2id makes every try slow, but no
number of them helps a passphrase of one letter.
"""

from __future__ import annotations

from regionmarker.errors import InputError

LEAST_LETTERS = 12
LEAST_DIFFERENT = 5


def check_new_passphrase(passphrase: str) -> None:
    """Refuse a new passphrase that is short, or hardly more than one letter over and over.

    Examples
    --------
    >>> check_new_passphrase("correct horse battery staple")
    >>> check_new_passphrase("a")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: the new passphrase has 1 letters and needs 12, 5 of them different: take four ...
    """
    if len(passphrase) < LEAST_LETTERS or len(set(passphrase)) < LEAST_DIFFERENT:
        raise InputError(
            f"the new passphrase has {len(passphrase)} letters and needs {LEAST_LETTERS}, {LEAST_DIFFERENT} of them "
            "different: take four words by chance, or give no passphrase and keep the secret file that is made"
        )
