"""What the options of pytest ask of one check."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.model.resolve import FRESH_SEEDS, names_a_seed, resolve_settings
from gradlint.rules.catalogue import rule_names

#: Options of pytest (``--gradlint-dtype``) → settings and arguments of ``gradlint.check``.
_FLAGS = {
    "dtype": "dtypes",
    "device": "devices",
    "order": "order",
    "select": "select",
    "ignore": "ignore",
    "fail_on": "fail_on",
}


def options(config: pytest.Config) -> dict[str, Any]:
    """The settings that the command line of pytest gives, apart from the seed."""
    given = {name: config.getoption(f"gradlint_{option}") for option, name in _FLAGS.items()}
    return {name: value for name, value in given.items() if value is not None}


def require_usable(config: pytest.Config) -> None:
    """Say what is wrong with the options and the settings once, before any test does.

    Raises:
        pytest.UsageError: one of them can't be used.
    """
    flags = {option: config.getoption(f"gradlint_{option}") for option in ("seed", *_FLAGS)}
    try:
        resolve_settings(flags, rules=rule_names())
    except GradlintError as error:
        place = error.place.replace("--", "--gradlint-") or "gradlint"
        raise pytest.UsageError(
            ": ".join([place, error.message, *filter(None, [error.hint])])
        ) from None


def seed_of(config: pytest.Config, node_id: str) -> int | str | None:
    """The seed of the test ``node_id``: the same in every run, and another one for every test. An
    option takes its place; where the settings give a seed, this is None."""
    given: str | None = config.getoption("gradlint_seed")
    if given is not None or names_a_seed():
        return given
    digest = hashlib.sha256(node_id.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % FRESH_SEEDS
