"""Whether what the search for changes needs is installed; the other modules import it."""

from __future__ import annotations

import importlib.util

from gradlint.base.errors import GradlintError


def check_installed(place: str) -> None:
    """Raise unless what the search needs is installed.

    Args:
        place: the command or option that asks for it.

    Raises:
        GradlintError: it is not; the hint says how to install it.
    """
    if importlib.util.find_spec("libcst") is None:
        raise GradlintError(
            "changes of the source need the package libcst",
            place=place,
            hint='pip install "gradlint[fix]"',
        )
