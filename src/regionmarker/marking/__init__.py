"""Embedding -> region -> mark."""
