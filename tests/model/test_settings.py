from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.model.resolve import FRESH_SEEDS, resolve_settings
from gradlint.model.settings import Settings

#: Three rules, so that the tests do not depend on which exist.
RULES = {
    "GL101": "wrong_number_of_gradients",
    "GL401": "wrong_gradient",
    "GL402": "wrong_at_points",
}


def resolve(
    flags: dict[str, Any] | None = None,
    *,
    toml: str = "",
    environ: dict[str, str] | None = None,
    folder: Path,
) -> Settings:
    if toml:
        (folder / "pyproject.toml").write_text(toml)
    return resolve_settings(flags or {}, cwd=folder, environ=environ or {}, rules=RULES)


def message(folder: Path, **given: Any) -> str:
    with pytest.raises(GradlintError) as caught:
        resolve(given.pop("flags", None), folder=folder, **given)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.fixture(autouse=True)
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlint.model.resolve._cores", lambda: 1)


def test_defaults_but_for_a_fresh_seed(tmp_path: Path) -> None:
    assert resolve({"seed": 0}, folder=tmp_path) == Settings()
    seeds = {resolve(folder=tmp_path).seed for _ in range(20)}
    assert len(seeds) > 1
    assert all(0 <= seed < FRESH_SEEDS for seed in seeds)


def test_as_many_jobs_as_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlint.model.resolve._cores", lambda: 3)
    assert resolve(folder=tmp_path).jobs == 3
    assert resolve({"jobs": 1}, folder=tmp_path).jobs == 1


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    toml = '[tool.gradlint]\ntimeout = 5\nseed = 1\norder = 1\nfail-on = "error"\n'
    environ = {"GRADLINT_TIMEOUT": "6.5", "GRADLINT_SEED": "2", "HOME": "/x"}
    found = resolve({"timeout": 7, "seed": None}, toml=toml, environ=environ, folder=tmp_path)
    assert found == Settings(timeout=7.0, seed=2, order=1, fail_on="error")


def test_every_setting_from_the_file(tmp_path: Path) -> None:
    toml = """
[tool.gradlint]
inputs = "randn(3)"
device = ["cpu", "cuda"]
require-device = true
dtypes = "float64, torch.bfloat16"
select = ["GL4", "wrong-number-of-gradients"]
ignore = "gl402"
order = 1
seed = 3
timeout = 1.5
jobs = 4
fail_on = "inconclusive"
import = ["a.b", "c"]
memory_mb = 512
max-calls = 90
debug = true
"""
    assert resolve(toml=toml, folder=tmp_path) == Settings(
        inputs="randn(3)",
        devices=("cpu", "cuda"),
        require_device=True,
        dtypes=("float64", "bfloat16"),
        promised_dtypes=("float64", "bfloat16"),
        select=("GL4", "GL101"),
        ignore=("GL402",),
        order=1,
        seed=3,
        timeout=1.5,
        jobs=4,
        fail_on="inconclusive",
        imports=("a.b", "c"),
        memory_mb=512,
        max_calls=90,
        debug=True,
    )


def test_every_setting_from_the_environment(tmp_path: Path) -> None:
    environ = {
        "GRADLINT_DEVICE": "cuda,cpu,cuda",
        "GRADLINT_DTYPES": "double,half",
        "GRADLINT_SELECT": "GL401",
        "GRADLINT_JOBS": " 2 ",
        "GRADLINT_DEBUG": "1",
        "GRADLINT_REQUIRE_DEVICE": "off",
        "GRADLINT_SEED": "9",
        "GRADLINT_MAX_CALLS": "40",
    }
    assert resolve(environ=environ, folder=tmp_path) == Settings(
        devices=("cuda", "cpu"),
        dtypes=("float64", "float16"),
        select=("GL401",),
        jobs=2,
        debug=True,
        seed=9,
        max_calls=40,
    )


def test_empty_lists_of_flags_are_not_given(tmp_path: Path) -> None:
    toml = '[tool.gradlint]\nselect = ["GL401"]\nignore = ["GL402"]\nseed = 1\n'
    found = resolve({"select": [], "ignore": ()}, toml=toml, folder=tmp_path)
    assert found == Settings(select=("GL401",), ignore=("GL402",), seed=1)


def test_the_nearest_file_upward_with_a_table_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.gradlint]\njobs = 2\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert resolve({}, folder=inner).jobs == 2
    (inner / "pyproject.toml").write_text("[tool.gradlint]\njobs = 3\n")
    assert resolve({}, folder=inner).jobs == 3


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        (
            "[project]\nname = 'x'\n\n[tool.gradlint]\n  timeot = 3\n",
            "pyproject.toml:5:3: unknown setting 'timeot'\ndid you mean `timeout`?",
        ),
        (
            "[tool.gradlint]\ntimeout = 'fast'\n",
            "pyproject.toml:2:1: timeout: expected a number of seconds above 0, at most "
            "1,000,000, got 'fast'",
        ),
        (
            "[tool.gradlint]\njobs = 0\n",
            "pyproject.toml:2:1: jobs: expected a whole number from 1 to 10,000, got 0",
        ),
        (
            "[tool.gradlint]\norder = 3\n",
            "pyproject.toml:2:1: order: expected 1 or 2, got 3",
        ),
        (
            "[tool.gradlint]\ndebug = 1\n",
            "pyproject.toml:2:1: debug: expected true or false, got 1",
        ),
        (
            "[tool.gradlint]\nseed = true\n",
            "pyproject.toml:2:1: seed: expected a whole number from 0 to 2^63 - 1, got True",
        ),
        (
            "[tool.gradlint]\nselect = [\n  'GL401',\n  'GL404',\n]\n",
            "pyproject.toml:4:4: select: no rule is called 'GL404'\n"
            "did you mean `GL402`? `gradlint rules` lists all",
        ),
        (
            "[tool.gradlint]\nimport = 3\n",
            "pyproject.toml:2:1: import: expected a text or a list of texts, got 3",
        ),
        (
            "[tool.gradlint]\nfail-on = 'warn'\n",
            "pyproject.toml:2:12: fail-on: 'warn' is not one of error, warning, info, "
            "inconclusive, uncovered\ndid you mean `warning`?",
        ),
        (
            "[tool.gradlint]\ndtype = ['flaot32']\n",
            "pyproject.toml:2:11: dtype: 'flaot32' is not one of float64, float32, bfloat16, "
            "float16\ndid you mean `float32`?",
        ),
        (
            "[tool.gradlint]\n\n[tool.gradlint.severities]\nGL401 = 'info'\nGL40 = 'mild'\n",
            "pyproject.toml:5:9: severities: 'mild' is not one of error, warning, info, off",
        ),
        (
            "[tool.gradlint.severities]\nGL401 = 'error'\nGL499 = 'off'\n",
            "pyproject.toml:3:1: severities: no rule is called 'GL499'\n"
            "did you mean `GL402`? `gradlint rules` lists all",
        ),
        (
            "[tool.gradlint]\nseverities = ['GL401']\n",
            "pyproject.toml:2:1: severities: expected a table [tool.gradlint.severities] with "
            "lines such as GL604 = \"info\", got ['GL401']",
        ),
        ("[tool]\ngradlint = 3\n", "pyproject.toml: tool.gradlint: expected a table"),
        (
            "tool.gradlint.jobs = -1\n",
            "pyproject.toml: jobs: expected a whole number from 1 to 10,000, got -1",
        ),
        ("[tool.gradlint\n", "pyproject.toml:1:15: not valid TOML: "),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, toml: str, expected: str) -> None:
    found = message(tmp_path, toml=toml)
    assert found == expected or (expected.endswith(": ") and found.startswith(expected))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {"GRADLINT_TIMEOUT": "inf"},
            "environment variable GRADLINT_TIMEOUT: expected a number of seconds above 0, "
            "at most 1,000,000, got 'inf'",
        ),
        (
            {"GRADLINT_DEVICE": "gpu"},
            "environment variable GRADLINT_DEVICE: 'gpu' is not one of cpu, cuda\n"
            "did you mean `cpu`?",
        ),
    ],
)
def test_mistakes_in_the_environment(
    tmp_path: Path, environ: dict[str, str], expected: str
) -> None:
    assert message(tmp_path, environ=environ) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"sede": 1}, "--sede: unknown setting 'sede'\ndid you mean `seed`?"),
        (
            {"select": ["wrong_gradent"]},
            "--select: no rule is called 'wrong_gradent'\n"
            "did you mean `wrong_gradient`? `gradlint rules` lists all",
        ),
        ({"seed": -1}, "--seed: expected a whole number from 0 to 2^63 - 1, got -1"),
        ({"seed": 2**63}, f"--seed: expected a whole number from 0 to 2^63 - 1, got {2**63}"),
        (
            {"timeout": 0},
            "--timeout: expected a number of seconds above 0, at most 1,000,000, got 0",
        ),
        (
            {"dtypes": " , "},
            "--dtypes: expected at least one of float64, float32, bfloat16, float16, got ' , '",
        ),
    ],
)
def test_mistakes_in_flags(tmp_path: Path, flags: dict[str, Any], expected: str) -> None:
    assert message(tmp_path, flags=flags) == expected


def test_prefixes_and_names_in_any_case(tmp_path: Path) -> None:
    found = resolve({"select": ["gl4,WRONG_NUMBER_OF_GRADIENTS", "GL"]}, folder=tmp_path)
    assert found.select == ("GL4", "GL101", "GL")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    assert message(tmp_path).startswith("pyproject.toml: can't be read: ")


def test_dtypes_of_a_file_are_promises_and_those_of_a_flag_are_not(tmp_path: Path) -> None:
    toml = '[tool.gradlint]\ndtypes = ["float32"]\n'
    found = resolve({"dtype": "float32,bfloat16", "seed": 0}, toml=toml, folder=tmp_path)
    assert (found.dtypes, found.promised_dtypes) == (("float32", "bfloat16"), ("float32",))
    environ = {"GRADLINT_DTYPE": "bfloat16"}
    found = resolve(environ=environ, folder=tmp_path)
    assert (found.dtypes, found.promised_dtypes) == (("bfloat16",), ("float32",))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"timeout": 1e9}, "--timeout: expected a number of seconds above 0, at most 1,000,000"),
        ({"memory": 99999999999999}, "--memory: expected a whole number of MiB from 1 to 4,398,0"),
        ({"jobs": 10**6}, "--jobs: expected a whole number from 1 to 10,000, got 1000000"),
        ({"seed": "9" * 5000}, "--seed: expected a whole number from 0 to 2^63 - 1, got '999"),
    ],
)
def test_numbers_that_no_system_call_takes(
    flags: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert message(tmp_path, flags=flags).startswith(expected)


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("x = " + "[" * 5000 + "]" * 5000, "pyproject.toml: nested too deeply"),
        ("x = " + "9" * 5000, "pyproject.toml: not valid TOML: ValueError: Exceeds the limit"),
        (f"[tool.gradlint]\nseed = 0x{'f' * 5000}\n", "pyproject.toml:2:1: seed: expected a who"),
        (
            f"[tool.gradlint]\nsanitizer = {{a = 0x{'f' * 5000}}}\n",
            "pyproject.toml:2:1: sanitizer: <dict, whose repr raises ValueError> is not one of",
        ),
        (f"[tool.gradlint]\nselect = {'[' * 90}{']' * 90}\n", "pyproject.toml:2:1: select: exp"),
        ("[tool.gradlint]\nseed = 2020-01-01\n", "pyproject.toml:2:1: seed: expected a whole num"),
    ],
)
def test_toml_that_python_can_not_hold(toml: str, expected: str, tmp_path: Path) -> None:
    assert message(tmp_path, toml=toml).startswith(expected)


def test_special_and_huge_files_are_no_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").symlink_to("/dev/zero")
    expected = "pyproject.toml: can't be read: is a device, not a regular file"
    assert message(tmp_path) == expected
    (tmp_path / "pyproject.toml").unlink()
    with open(tmp_path / "pyproject.toml", "wb") as file:
        file.truncate(2**30)
    expected = "pyproject.toml: can't be read: is larger than 1,024 KiB, the most that is read"
    assert message(tmp_path) == expected


def test_unknown_variables_are_a_warning(tmp_path: Path) -> None:
    said: list[str] = []
    environ = {"GRADLINT_TIMEOUTS": "5", "GRADLINT_ROOT": "/x", "GRADLINT_SEED": "3"}
    found = resolve_settings({}, cwd=tmp_path, environ=environ, rules=RULES, warn=said.append)
    assert found.seed == 3
    assert said == [
        "environment variable GRADLINT_ROOT: no setting has that name; it is not looked at",
        "environment variable GRADLINT_TIMEOUTS: no setting has that name; did you mean "
        "GRADLINT_TIMEOUT?",
    ]
