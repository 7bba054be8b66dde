"""Does the verdict convict the innocent? Run it by ``python -m studies.innocents``."""
