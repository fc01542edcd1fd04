"""What ``gradlint env`` prints."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from gradlint.report import wording
from gradlint.report.text import Page

#: Width of the left column.
COLUMN = 15


def add_environment(page: Page, facts: dict[str, Any]) -> None:
    """Add the facts that :func:`gradlint.environment.environment` gathered."""
    python, torch = facts["python"], facts["torch"]
    _row(page, "gradlint", f"{facts['gradlint']['version'] or 'not installed as a package'}")
    _row(page, "python", [f"{python['version']} ({python['executable']})", python["platform"]])
    _row(page, "cores", str(python["cores"]))
    if torch.get("error"):
        _row(page, "torch", Text(page.clean(f"can't be imported: {torch['error']}"), "red"))
    else:
        build = f"CUDA {torch['cuda_build']}" if torch["cuda_build"] else "without CUDA"
        _row(page, "torch", [f"{torch['version']}, built {_with(build)}", torch["path"]])
        _row(page, "gpu", [_gpu(gpu) for gpu in torch["gpus"]] or "none")
    if "triton" in facts:
        _row(page, "triton", facts["triton"]["version"] or "not installed")
    _heading(page, "compilers")
    for name, tool in facts["compilers"].items():
        if tool["path"] is None:
            _row(page, name, "not found")
        else:
            _row(page, name, f"{tool['version'] or tool.get('error', '?')} ({tool['path']})")
    _heading(page, "extras")
    if not facts["extras"]:
        page.paragraph("unknown: gradlint is not installed as a package", indent=2, hanging=2)
    for name, extra in facts["extras"].items():
        have = [f"{package} {version}" for package, version in extra["versions"].items()]
        _row(page, name, ", ".join([*have, *(f"no {text}" for text in extra["missing"])]))
        if extra["install"]:
            page.row("", [Text(page.clean(extra["install"]))], column=COLUMN, whole=True)
    _heading(page, "can run here")
    for name, answer in facts["can_run"].items():
        style = "green" if answer.partition(":")[0] == "yes" else "yellow"
        _row(page, name, Text(page.clean(answer), style))


def _row(page: Page, label: str, value: Any) -> None:
    page.row(label, value, column=COLUMN, style="bold")


def _heading(page: Page, words: str) -> None:
    page.blank()
    page.line(words, "bold underline")


def _with(build: str) -> str:
    return build if build.startswith("without") else f"with {build}"


def _gpu(gpu: dict[str, Any]) -> str:
    memory = wording.size(gpu["memory_bytes"]).partition("(")[2].rstrip(")")
    text = f"{gpu['name']}, compute capability {gpu['capability']}, {memory}"
    return f"{text}; unusable: {gpu['error']}" if gpu["error"] else text
