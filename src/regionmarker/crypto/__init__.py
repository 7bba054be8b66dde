"""Secrets: bytes behind a seal, what is derived from them, and the encrypted envelope of key files."""
