"""``python -m gradlint`` is the console script ``gradlint``."""

from __future__ import annotations

import sys

from gradlint.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
