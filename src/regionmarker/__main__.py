"""``python -m regionmarker``."""

from regionmarker.cli import main

main()
