"""The researcher's part: corpora, defenses, attacks, stealers, utility, tables."""
