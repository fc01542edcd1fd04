"""Runs torch's extension builder in a process of its own and reads what it wrote."""

from __future__ import annotations

import json
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import torch

from gradlint.native import _tools
from gradlint.native._files import read_json
from gradlint.native.errors import BuildError
from gradlint.native.failures import build_failed, failures_in, load_failed
from gradlint.native.progress import Progress, Sink
from gradlint.native.recipe import Recipe

#: Seconds that one step of a build may take. Heuristic: a file that includes all of torch's
#: headers takes one minute on a slow core, one of templates for nvcc a few.
PATIENCE = 900.0

#: Seconds between two reports of progress.
_PULSE = 0.5

#: Seconds that a builder may take to end once it is terminated.
_GRACE = 5.0

_STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)")


def run(recipe: Recipe, sources: list[Path], workplace: Path, sink: Sink, patience: float) -> None:
    """Build ``recipe`` in ``workplace`` and try to load it.

    Raises:
        BuildError: a tool is missing, or the sources do not compile, link or load.
    """
    tools = [_tools.ninja(), _tools.compiler()]
    environment = dict(os.environ)
    if recipe.with_cuda:
        tools.append(_tools.need_nvcc())
        environment["CUDA_HOME"] = _tools.cuda_home(tools[-1])
    environment["PATH"] = _tools.search_path(*tools)
    environment["CXX"] = environment.get("CXX") or os.path.basename(tools[1].path)
    if not environment.get("MAX_JOBS", "").isdigit():
        environment["MAX_JOBS"] = str(_tools.cores())
    # The builder must be the gradlint that runs here, wherever that was imported from.
    paths = [str(Path(__file__).resolve().parents[2]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    request, answer = workplace / "request.json", workplace / "answer.json"
    request.write_text(json.dumps(_request(recipe, sources, workplace)), encoding="utf-8")
    answer.unlink(missing_ok=True)
    command = [sys.executable, "-m", "gradlint.native._child", str(request), str(answer)]
    process = subprocess.Popen(
        command,
        cwd=workplace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    try:
        lines = list(_watched(process, recipe, sink, patience))
        process.wait()
    except BaseException:
        _end(process)
        raise
    output = _original("".join(lines), recipe, workplace)
    if not answer.is_file():
        raise _died(recipe, process.returncode, output)
    failure = read_json(answer)
    if failure:
        failures = failures_in(output, [*map(str, sources)], recipe, workplace)
        if failures:
            raise build_failed(recipe.name, failures)
        raise load_failed(recipe.name, failure, output)


def headers(recipe: Recipe, workplace: Path) -> list[Path]:
    """The headers that the objects in ``workplace`` were made of, without those of torch, Python
    and the system; none where the recipe holds them itself."""
    if recipe.tree is not None:
        return []
    done = subprocess.run(
        [_tools.ninja().path, "-t", "deps"],
        cwd=workplace,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    system = [os.path.dirname(torch.__file__), sysconfig.get_path("include"), "/usr", sys.prefix]
    if recipe.with_cuda:
        system.append(_tools.cuda_home(_tools.need_nvcc()))
    own = [*(os.path.dirname(source) for source in recipe.sources), *recipe.include_dirs]
    found = []
    for line in done.stdout.splitlines():
        if line.startswith("    "):
            path = os.path.realpath(os.path.join(workplace, line.strip()))
            if _below(path, own) or not _below(path, system):
                found.append(Path(path))
    return sorted({path for path in found if workplace not in path.parents})


def _request(recipe: Recipe, sources: list[Path], workplace: Path) -> dict[str, object]:
    return {
        "name": recipe.name,
        "sources": [str(source) for source in sources],
        "extra_cflags": words(recipe.cflags),
        "extra_cuda_cflags": words(recipe.cuda_cflags),
        "extra_ldflags": words(recipe.ldflags),
        # torch quotes them for the shell, and forgets ninja.
        "extra_include_paths": [path.replace("$", "$$") for path in recipe.include_dirs],
        "build_directory": str(workplace),
        "with_cuda": recipe.with_cuda,
    }


def words(flags: Sequence[str]) -> list[str]:
    """The words of ``flags``, written so that ninja and its shell pass them on as they are.

    Words are separated and quoted as in a shell, but nothing in them is expanded, and no ``;`` ends
    a command.

    Raises:
        BuildError: a quote is not closed, or holds a line end.
    """
    made = []
    for flag in flags:
        try:
            split = shlex.split(flag)
        except ValueError:
            raise BuildError(
                f"the flag `{flag}` has a quote that is not closed", hint="close it"
            ) from None
        if any("\n" in word for word in split):
            raise BuildError(
                f"the flag {flag!r} has a line end between quotes, which ninja's files can't hold",
                hint="leave it out",
            )
        made += [shlex.quote(word).replace("$", "$$") for word in split]
    return made


def _watched(
    process: subprocess.Popen[str], recipe: Recipe, sink: Sink, patience: float
) -> Iterator[str]:
    """The lines that the builder writes; ``sink`` is called at every step and twice a second."""
    assert process.stdout is not None
    incoming: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, incoming), daemon=True).start()
    started = heard = time.monotonic()
    done, total, doing = 0, 0, ""
    while True:
        with suppress(queue.Empty):
            line = incoming.get(timeout=_PULSE)
            if line is None:
                return
            yield line
            step = _STEP.match(line)
            if step:
                heard = time.monotonic()
                done, total, doing = int(step[1]), int(step[2]), _compiled(step[3])
        now = time.monotonic()
        sink(Progress(f"building {recipe.name}", done, total, doing, now - started))
        if now - heard > patience:
            raise BuildError(
                f"building {recipe.name} was stopped: no step finished in {patience:.0f} s"
                + (f", the last was {doing}" if doing else ""),
                hint="check whether the compiler hangs; a smaller source may help, or MAX_JOBS=1 "
                "where memory is short",
            )


def _read(stream: IO[str], incoming: queue.Queue[str | None]) -> None:
    with suppress(ValueError, OSError):
        for line in stream:
            incoming.put(line)
    incoming.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    """End the builder and all that it started."""
    process.terminate()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _compiled(command: str) -> str:
    """The file that a step compiled, from its command."""
    found = re.search(r" -c (\S+)", command)
    if found is None:
        return "linked"
    return os.path.basename(found[1]).replace("_host.cpp", ".cu")


def _original(output: str, recipe: Recipe, workplace: Path) -> str:
    """``output`` with the original paths of the copied sources."""
    return output.replace(str(workplace / "tree"), str(recipe.tree)) if recipe.tree else output


def _died(recipe: Recipe, status: int, output: str) -> BuildError:
    how = f"status {status}"
    if status < 0:
        with suppress(ValueError):
            how = signal.Signals(-status).name
    tail = "\n".join(output.strip().splitlines()[-5:])
    return BuildError(
        f"the process that builds {recipe.name} ended with {how}" + (f":\n{tail}" if tail else ""),
        hint="SIGKILL mostly means that memory ran out (set MAX_JOBS=1); SIGSEGV or SIGABRT at the "
        "end comes from loading the library itself",
    )


def _below(path: str, folders: list[str]) -> bool:
    return any(os.path.commonpath([path, real]) == real for real in map(os.path.realpath, folders))
