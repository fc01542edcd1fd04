"""From the output of the builder to an error that a user can act on."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gradlint.native.errors import BuilderFailed, BuildError, Failure
from gradlint.native.recipe import Recipe

#: Lines of a compiler's text that are shown for one source; the first error explains most others.
_LINES = 40

_FAILED = re.compile(r"^FAILED: (?:\[code=-?\d+\] )?(\S+)")
_OTHER = re.compile(r"^(?:\[\d+/\d+\] |ninja: |FAILED: )")


#: What is looked for in the text, in this order → the next step.
_ADVICE = (
    (
        r"Killed signal terminated|virtual memory exhausted|cannot allocate memory|out of memory",
        "memory ran out: set MAX_JOBS=1, so that one file is compiled at a time",
    ),
    (r"No space left on device", "free some space, or set TORCH_EXTENSIONS_DIR to another disk"),
    (
        r"Python\.h: No such file",
        "install Python's headers (Debian: apt install python3-dev)",
    ),
    (
        r"unsupported GNU version|-allow-unsupported-compiler",
        "this nvcc does not support the C++ compiler: set CXX and CC to an older one, or install a "
        "newer CUDA toolkit",
    ),
    (
        r"undefined (?:symbol|reference)",
        "a function is declared but not defined in the sources: name the source that defines it; "
        "a symbol of torch's own means a build for another version of torch",
    ),
    (
        r"multiple definition of",
        "a function is defined in two sources: leave one out, or make it inline",
    ),
    (
        r"fatal error: (?:cu(?:blas|fft|rand|solver|sparse)|nvtx|nvToolsExt|nvrtc)\w*\.h: No such",
        "the CUDA toolkit lacks the headers of one of its libraries: install them, or include "
        "<c10/cuda/CUDAStream.h> in place of <ATen/cuda/CUDAContext.h>, which asks for them",
    ),
    (
        r"fatal error: .*: No such file",
        "the header is not in any folder that is searched: add its folder to `include_dirs`",
    ),
)


def failures_in(
    output: str, sources: list[str], recipe: Recipe, workplace: Path
) -> tuple[Failure, ...]:
    """The steps that failed, with what the compiler wrote about each."""
    places = {_object(source, recipe): source for source in sources}
    found: list[Failure] = []
    lines = output.splitlines()
    for number, line in enumerate(lines):
        failed = _FAILED.match(line)
        if failed is None:
            continue
        text: list[str] = []
        for later in lines[number + 2 :]:  # the line between is the command
            if _OTHER.match(later):
                break
            text.append(later)
        source = places.get(os.path.basename(failed[1]), "")
        found.append(Failure(_user_source(source, recipe, workplace), _shortened(text)))
    return tuple(found)


def build_failed(name: str, failures: tuple[Failure, ...]) -> BuildError:
    """The error for steps that failed."""
    texts = "\n".join(failure.text for failure in failures)
    what = [os.path.basename(failure.source) for failure in failures if failure.source]
    doing = f"compiling {', '.join(what)}" if what else "linking it"
    return BuildError(
        f"{name} can't be built: {doing} failed\n{texts}", hint=advice(texts), failures=failures
    )


def load_failed(name: str, answer: dict[str, str], output: str) -> BuildError:
    """The error for a library that was built and can't be loaded, or a builder that gave up."""
    text = answer["text"].strip() or answer["type"]
    if "loading" not in output.lower() and answer["type"] != "OSError":
        return BuilderFailed(f"{name} can't be built: {answer['type']}: {text}", hint=advice(text))
    return BuildError(
        f"{name} was built but can't be loaded: {text}",
        hint=advice(text),
        failures=(Failure("", text),),
    )


def advice(text: str) -> str:
    """The next step for what a compiler, a linker or the loader wrote."""
    for pattern, step in _ADVICE:
        if re.search(pattern, text):
            return step
    return "fix the first error that the compiler reports"


def _object(source: str, recipe: Recipe) -> str:
    stem, ending = os.path.splitext(os.path.basename(source))
    return f"{stem}.cuda.o" if ending in (".cu", ".cuh") and recipe.with_cuda else f"{stem}.o"


def _user_source(source: str, recipe: Recipe, workplace: Path) -> str:
    path = Path(source)
    if recipe.tree is not None and workplace / "tree" in path.parents:
        return str(recipe.tree / path.relative_to(workplace / "tree"))
    if path.parent == workplace:
        stem = path.stem.removesuffix("_host")
        for host in recipe.host_sources:
            if Path(host).stem == stem:
                return str(recipe.tree / host if recipe.tree is not None else host)
    return source


def _shortened(text: list[str]) -> str:
    if len(text) <= _LINES:
        return "\n".join(text)
    return "\n".join([*text[:_LINES], f"… {len(text) - _LINES} more lines"])
