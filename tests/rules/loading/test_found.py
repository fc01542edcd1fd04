"""GL001, GL002, GL005, GL006 and GL007 as the reporting process builds them."""

from __future__ import annotations

import subprocess
import sys

from gradlint.experiments.loading.process_findings import (
    WorkerEnd,
    out_of_memory_finding,
    replaced_code_finding,
)
from gradlint.model.op import OpRef
from gradlint.model.report import Location
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of
from gradlint.rules.loading import (
    no_usable_inputs,
    process_crashed,
    target_not_loadable,
    timed_out,
)
from gradlint.running.events import Unloadable
from gradlint.running.findings import unloadable

SETTINGS = Settings(seed=7, imports=("mylib.native",), timeout=2.5)
TARGET = "my ops.py:Op"


def test_target_not_loadable() -> None:
    finding = target_not_loadable.make_finding(
        TARGET,
        "importing it raised ModuleNotFoundError",
        SETTINGS,
        error="No module named 'nothing'",
        location=Location("my ops.py", 3),
    )
    assert finding.code == "GL001"
    assert finding.severity == "error"
    assert finding.message.endswith("importing it raised ModuleNotFoundError")
    assert finding.evidence == {"original": "No module named 'nothing'"}
    assert finding.location == Location("my ops.py", 3)
    assert finding.help.startswith("install the missing package")
    assert finding.reproduce == "gradlint check 'my ops.py:Op' --seed 7 --import mylib.native"


def test_no_usable_inputs() -> None:
    attempts = [(f"randn({n})", "ValueError: no") for n in range(10)]
    finding = no_usable_inputs.make_finding(TARGET, attempts, "--inputs 'randn(3)'", SETTINGS)
    assert finding.code == "GL002"
    assert finding.severity == "warning"
    assert finding.message == "no usable inputs found: 10 attempts, none ran"
    assert finding.evidence["tried 1"] == "randn(0): ValueError: no"
    assert finding.evidence["left out"] == "2 more errors"
    assert finding.help == (
        "let gradlint learn them from a program that calls it (gradlint record -- python "
        "your_program.py), or give inputs: --inputs 'randn(3)'"
    )
    assert finding.cause_text == ""
    context = "TypeError: unsupported operand type(s) for *: 'OpBackward' and 'int'"
    alike = no_usable_inputs.make_finding(TARGET, [("x=2", context)], "--inputs '2'", SETTINGS)
    assert "`ctx` is missing" in alike.cause_text
    assert alike.help.startswith("write `forward(ctx, ...)`")
    often = no_usable_inputs.make_finding(TARGET, [("x=2", context)], "", SETTINGS, count=37)
    assert often.message == "no usable inputs found: 37 attempts, none ran"
    assert "left out" not in often.evidence
    missing = "FileNotFoundError: [Errno 2] No such file or directory: 'w.pt'"
    tried = [("path='w.pt'", missing), ("path=None", "TypeError: expected str")]
    surroundings = no_usable_inputs.make_finding(TARGET, tried, "--inputs 'x'", SETTINGS)
    assert surroundings.cause_text == "it opens a file that is not there, or not for it"
    assert surroundings.help.startswith("run it in the folder that its paths start from")
    assert surroundings.help.endswith(", or give inputs: --inputs 'x'")

    nothing = no_usable_inputs.make_finding(TARGET, [], "", SETTINGS)
    assert nothing.message == "no usable inputs found: nothing to try"


def test_process_crashed() -> None:
    end = WorkerEnd(TARGET, "forward", SETTINGS, "GL401", "inferred", output_tail=["last words"])
    finding = process_crashed.make_finding(end, signal="SIGSEGV")
    assert finding.message == "process crashed in forward, during GL401: SIGSEGV"
    assert finding.cause_text == "native code read or wrote memory that is not its own"
    assert finding.evidence == {
        "phase": "forward",
        "rule": "GL401",
        "signal": "SIGSEGV",
        "output_tail": ["last words"],
    }
    assert finding.sample == "inferred"
    assert "--select GL401" in finding.reproduce
    for work, words in (
        ("anatomy", "during the look at its tensors"),
        ("gradcheck", "during torch's gradcheck"),
    ):
        end = WorkerEnd(TARGET, "backward", SETTINGS, work)
        beside = process_crashed.make_finding(end, signal="SIGSEGV")
        assert beside.message == f"process crashed in backward, {words}: SIGSEGV"
        assert beside.evidence["rule"] == work
        assert "--select" not in beside.reproduce
    left = process_crashed.make_finding(WorkerEnd(TARGET, "import", SETTINGS), exit_code=0)
    assert left.message == "process crashed while it was imported: exit code 0"
    assert left.evidence["exit_code"] == 0
    assert "os._exit" in left.cause_text


def test_timed_out() -> None:
    end = WorkerEnd(TARGET, "backward", SETTINGS, "GL501", stack=["a.py:3 in f"])
    finding = timed_out.make_finding(end)
    assert finding.message == "timed out in backward, during GL501: more than 2.5 s"
    assert finding.evidence["traceback"] == ["a.py:3 in f"]


def test_out_of_memory() -> None:
    rule = rule_of("loading.out_of_memory")
    end = WorkerEnd(TARGET, "inputs", SETTINGS)
    finding = out_of_memory_finding(rule, end, limit_mb=2048.0, message="no more")
    assert finding.code == "GL007"
    assert finding.message == ("out of memory while inputs were looked for: more than 2,048 MiB")
    assert finding.evidence["original"] == "no more"


def test_code_that_replaces_functions() -> None:
    rule = rule_of("loading.process_state_changed")
    end = WorkerEnd(TARGET, "forward", SETTINGS, "GL401")
    finding = replaced_code_finding(rule, end, "TypeError", "no", list("abcde"))
    assert (finding.code, finding.severity) == ("GL008", "error")
    assert finding.message == (
        "code of the op replaces or removes a, b, c, d …: gradlint failed in forward, during GL401"
    )


def test_findings_are_built_without_torch() -> None:
    program = (
        "import sys\n"
        "from gradlint.model.settings import Settings\n"
        "import gradlint.running.findings\n"
        "from gradlint.rules.loading import process_crashed\n"
        "from gradlint.experiments.loading.process_findings import WorkerEnd\n"
        "process_crashed.make_finding(WorkerEnd('t', 'forward', Settings()), signal='SIGABRT')\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_advice_names_the_module_that_does_not_import() -> None:
    message = "importing `pkg.mod` raised ValueError: no"
    finding = target_not_loadable.make_finding(
        "pkg.mod:Op", message, Settings(), error="ValueError: no"
    )
    assert "python -c 'import pkg.mod'" in finding.help


def test_a_constructor_that_was_guessed_in_vain_is_a_warning() -> None:
    ref = OpRef(TARGET, "my ops.py", "Op")
    severities = [
        unloadable(ref, SETTINGS, Unloadable("no instance", "", None, "", guessed)).severity
        for guessed in (True, False)
    ]
    assert severities == ["warning", "error"]
