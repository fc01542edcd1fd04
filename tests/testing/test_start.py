"""pytest starts without torch, and without anything of gradlint that is not needed."""

from __future__ import annotations

import json

import pytest

from tests.testing.conftest import OPTIONS
from tests.testing.test_collecting import RIGHT

#: Writes what is loaded at the end of a run.
CONFTEST = """
import json, pathlib, sys

def pytest_unconfigure(config):
    pathlib.Path("loaded.json").write_text(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(
    ("options", "loaded"),
    [
        ((), ["gradlint", "gradlint.pytest_plugin"]),
        (
            ("--gradlint-gradcheck",),
            [
                *("gradlint", "gradlint.pytest_plugin"),
                *("gradlint.testing", "gradlint.testing.swapping"),
            ],
        ),
        (("--gradlint", "--collect-only"), None),
    ],
)
def test_what_a_run_imports(
    pytester: pytest.Pytester, options: tuple[str, ...], loaded: list[str] | None
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it="def test_it(): pass")
    (pytester.path / "right.yaml").write_text(RIGHT, encoding="utf-8")
    done = pytester.runpytest_subprocess(*OPTIONS, *options)
    assert done.ret == pytest.ExitCode.OK
    modules = json.loads((pytester.path / "loaded.json").read_text(encoding="utf-8"))
    assert {"torch", "sympy"} & set(modules) == set()
    if loaded is not None:
        assert [name for name in modules if name.split(".")[0] == "gradlint"] == loaded
        assert {"pydantic", "rich", "yaml", "msgspec", "typer"} & set(modules) <= _others()


def _others() -> set[str]:
    """What other plugins of this environment load."""
    return {"rich", "yaml"}


def test_the_options_are_explained(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_inprocess(*OPTIONS, "--help")
    done.stdout.fnmatch_lines(["gradients of PyTorch operators (gradlint):", "  --gradlint *"])
    done = pytester.runpytest_inprocess(*OPTIONS, "--markers")
    done.stdout.fnmatch_lines(["@pytest.mark.gradlint(**options): an operator *"])
