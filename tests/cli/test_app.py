"""Commands are imported when they are used, and every error is one message and an exit code."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from gradlint.cli.app import COMMANDS, command
from gradlint.cli.entry import main
from gradlint.running import job

ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["check", "--help"],
        ["report", "--help"],
        ["explain", "GL401"],
        ["rules"],
        ["schema", "spec"],
        ["validate", "specs"],
        ["check"],
        ["check", "x.py", "--select", "nonsense"],
    ],
    ids=" ".join,
)
def test_no_torch_is_imported(words: list[str]) -> None:
    heavy = "[name for name in ('torch', 'numpy', 'sympy') if name in sys.modules]"
    code = (
        f"import sys; from gradlint.cli.entry import main; main({words!r}); print('heavy', {heavy})"
    )
    assert run(code).splitlines()[-1] == "heavy []"


def test_importing_the_package_is_light() -> None:
    code = "import sys, gradlint; print(sorted(n for n in sys.modules if n.startswith('gradlint')))"
    assert run(code) == "['gradlint']\n"


#: What commands import of the floors that start workers: what runs code of the target there, and
#: what does not.
LOADS_TARGETS = {"audited", "gated", "listed", "starter", "sweep_target", "Session", "Server"}
LOADS_NONE = {
    *("Run", "WorkerFailed", "call_in_worker", "entries", "exit_code"),
    *("ENDINGS", "Files", "Happening", "Shown", "folders_of", "waiting"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_who_runs_code_of_the_target_can_confine_it(name: str) -> None:
    text = (ROOT / "gradlint" / "cli" / f"{name}.py").read_text()
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    above = (
        *("gradlint.api", "gradlint.sweeping", "gradlint.gate.gated", "gradlint.gate.listing"),
        *("gradlint.running.call", "gradlint.running.run", "gradlint.watching"),
        "gradlint.serving",
    )
    used = {alias.name for node in imports if node.module in above for alias in node.names}
    assert used <= LOADS_TARGETS | LOADS_NONE
    made = command(name)
    parts = [made, *getattr(made, "commands", {}).values()]
    options = {option for part in parts for parameter in part.params for option in parameter.opts}
    assert ("--untrusted" in options) == bool(used & LOADS_TARGETS)


def test_work_without_settings_names_no_target() -> None:
    """The settings say whether a worker is confined; work that has none loads no code of a user."""
    works = [work for work in vars(job).values() if dataclasses.is_dataclass(work)]
    named = {work: {field.name for field in dataclasses.fields(work)} for work in works}
    with_target = {work for work, fields in named.items() if "ref" in fields}
    assert with_target == {work for work, fields in named.items() if "settings" in fields}
    assert len(with_target) >= 6


def test_names_of_the_package_are_loaded_when_used() -> None:
    import gradlint

    assert gradlint.Report.__name__ == "Report"
    assert callable(gradlint.check)
    assert gradlint.__version__
    assert {"Report", "check", "__version__"} <= set(dir(gradlint))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = gradlint.nonsense


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: gradlint {name}" in capsys.readouterr().out


def test_help_lists_every_command_with_a_whole_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert "..." not in text.partition("Commands:")[2]


def test_module_and_console_script_are_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradlint", "--version"], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "gradlint")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Usage: gradlint"),
        (["chekc", "x"], "Did you mean 'check'?"),
        (["nothinglikeit"], "No such command 'nothinglikeit'."),
        (["check", "--selct", "GL4", "x"], "--select"),
        (["check"], "no target given"),
        (["check", "x", "--select", "GL9x"], "GL9x"),
        (["check", "x", "--select", "wrong_gradeint"], "wrong_gradient"),
        (["check", "x", "--ignore", "GL40l"], "GL40"),
        (["check", "x", "--dtype", "float46"], "did you mean `float64`?"),
        (["check", "x", "--device", "cdua"], "did you mean `cuda`?"),
        (["check", "x", "--order", "3"], "--order"),
        (["check", "x", "--seed", "-1"], "--seed"),
        (["check", "x", "-j", "0"], "--jobs"),
        (["check", "x", "--memory", "0"], "--memory"),
        (["check", "x", "--timeout", "0"], "--timeout"),
        (["check", "x", "--fail-on", "warnings"], "did you mean `warning`?"),
        (["check", "x", "--color", "nevr"], "did you mean `never`?"),
        (["check", "x", "--output-format", "jsno"], "did you mean `json`?"),
        (["check", "x", "--report", "json"], "FORMAT=PATH"),
        (["check", "x", "--report", "jso=out"], "did you mean `json`?"),
        (["check", "x", "-o", "no/such/folder/out"], "no folder"),
        (["check", "x", "-o", "."], "is a folder"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert told in out + err
    assert "Traceback" not in out + err


def test_markup_in_what_the_user_typed_is_printed_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "[red]no[/] [5].py:Op"]) == 2
    assert "[red]no[/] [5].py" in capsys.readouterr().err


def test_a_fault_of_gradlints_own_is_exit_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import gradlint.model.resolve

    def broken(*args: object, **options: object) -> None:
        raise ZeroDivisionError("oops [red]")

    monkeypatch.setattr(gradlint.model.resolve, "resolved_settings", broken)
    assert main(["check", "x"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("internal error: ZeroDivisionError: oops [red]\n")
    assert "Traceback" not in err
    assert main(["check", "x", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err
