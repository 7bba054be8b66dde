"""The researcher's part: corpora, defenses, attacks, thieves, utility, tables."""
