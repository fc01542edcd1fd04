"""The pytest plugin, as far as every run of pytest needs it: options, a marker and a fixture.

pytest imports this module at every start, whether gradlint is used or not. It therefore imports
nothing: neither torch nor anything else of gradlint. ``gradlint.testing`` does the work and is
imported by the run that asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradlint.testing.fixture import Checker

#: What follows ``--gradlint-`` in the options that change a setting → metavar and help.
_OPTIONS = {
    "seed": ("N", "Seed of all random numbers. Default: one that follows from the test's id."),
    "dtype": ("LIST", "float64,float32,bfloat16,float16."),
    "device": ("LIST", "cpu,cuda."),
    "order": ("1|2", "2 checks second derivatives too."),
    "select": ("CODES", "Rules to run: codes, prefixes or names."),
    "ignore": ("CODES", "Rules to leave out."),
    "fail-on": ("LEVEL", "error, warning, info, inconclusive or uncovered."),
}

#: The line that describes the marker, as ``pytest --markers`` shows it.
_MARKER = (
    "gradlint(**options): an operator (a Function, Module or function of a test module) that "
    "--gradlint checks as a test; the options are those of gradlint.check."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all of which begin with ``--gradlint``."""
    group = parser.getgroup("gradlint", "gradients of PyTorch operators (gradlint)")
    group.addoption(
        "--gradlint",
        action="store_true",
        default=None,
        help="Check specs, marked operators and gradlint_targets as tests.",
    )
    group.addoption(
        "--gradlint-gradcheck",
        action="store_true",
        help="Put gradlint's gradcheck and gradgradcheck in the place of torch's, and say where "
        "their verdicts differ.",
    )
    for name, (metavar, text) in _OPTIONS.items():
        group.addoption(f"--gradlint-{name}", metavar=metavar, help=text)
    parser.addini(
        "gradlint", "Check specs, marked operators and gradlint_targets as tests.", type="bool"
    )
    parser.addini(
        "gradlint_targets",
        "Operators to check as tests, one TARGET of `gradlint check` a line; paths are relative to "
        "the root of the tests.",
        type="linelist",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Swap before anything is imported that could bind torch's functions."""
    _swap(early_config, early_config.known_args_namespace.gradlint_gradcheck)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the plugins that this run asks for."""
    config.addinivalue_line("markers", _MARKER)
    # A plugin named by -p in a conftest comes too late for the hook above.
    _swap(config, config.option.gradlint_gradcheck)
    if config.option.gradlint or (config.option.gradlint is None and config.getini("gradlint")):
        from gradlint.testing.collecting import Collecting

        config.pluginmanager.register(Collecting(config), "gradlint-collecting")


def _swap(config: pytest.Config, asked: bool) -> None:
    if asked and not config.pluginmanager.has_plugin("gradlint-gradcheck"):
        from gradlint.testing.swapping import Swapping

        config.pluginmanager.register(Swapping(), "gradlint-gradcheck")


@pytest.fixture(name="gradlint")
def _checker(request: pytest.FixtureRequest) -> Checker | Any:
    """Check an operator inside a test: `gradlint.check(op, inputs)`."""
    from gradlint.testing.fixture import Checker

    return Checker(request.node)
