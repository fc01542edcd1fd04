"""Errors for targets that do not exist, with the nearest names and the next step."""

from __future__ import annotations

import os
from collections.abc import Iterable

from gradlint.base.errors import TargetError
from gradlint.base.text import nearest
from gradlint.model.op import OpRef
from gradlint.targets._scan import operators
from gradlint.targets._static import StaticModule
from gradlint.targets.locate import folder_files, nearest_modules, skipped_folder

FORMS = (
    "A target is pkg.mod:Name, path/file.py:Name, a module, file, folder, YAML spec "
    "or torch.ops.ns.name."
)

#: How many files below the working directory are searched for a similar name.
_MOST_FILES = 3000


def suggest(names: Iterable[str], otherwise: str = "") -> str:
    """ "Did you mean …?" with ``names``, or ``otherwise`` when there are none."""
    quoted = [f"`{name}`" for name in dict.fromkeys(names)]
    if not quoted:
        return otherwise
    listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    return f"Did you mean {listed}?"


def unknown_file(path: str, attribute: str = "") -> TargetError:
    """The error for a path that does not exist."""
    what = "file" if os.path.splitext(path)[1] else "file or folder"
    tail = f":{attribute}" if attribute else ""
    found = [name + tail for name in _near_paths(path)]
    return TargetError(
        f"no {what} `{path}`",
        hint=suggest(found, "Paths are taken from the folder where gradlint is run."),
    )


def unknown_module(name: str, attribute: str = "", *, registered: bool = False) -> TargetError:
    """The error for a dotted name (or a single word) that is not a module.

    ``registered``: it was written ``ns::name``, as C++ code names ops registered with torch.
    """
    tail = f":{attribute}" if attribute else ""
    found = [other + tail for other in nearest_modules(name)]
    if "." not in name:
        found += [path + tail for path in _near_paths(name)]
    if registered:
        return TargetError(
            f"no module or file `{name}`",
            hint=suggest([f"torch.ops.{name}.{attribute}"])
            + " (with --import MODULE for the module that registers it)",
        )
    head = name.partition(".")[0]
    step = f"Install the package that holds `{head}`, or run gradlint from the folder above it."
    return TargetError(f"no module or file `{name}`", hint=suggest(found, f"{step} {FORMS}"))


def unknown_attribute(ref: OpRef, static: StaticModule) -> TargetError:
    """The error for a name that the source of a module does not define."""
    listed = [op.name for op in operators(static)]
    return absent(ref, listed, sorted(static.names | set(static.classes)))


def absent(ref: OpRef, listed: list[str], names: Iterable[str]) -> TargetError:
    """The error for ``ref.attribute`` missing where ``listed`` operators and ``names`` exist."""
    prefix = ref.path if ref.source == "file" else ref.path.rpartition(":")[2]
    near = nearest(ref.attribute, listed, limit=3) or nearest(ref.attribute, names, limit=3)
    found = [f"{prefix}:{name}" for name in near]
    if ref.source == "module" and not near:
        head, dot, rest = ref.attribute.partition(".")
        found = [other + (dot and f":{rest}") for other in nearest_modules(f"{prefix}.{head}")]
    if found:
        hint = suggest(found)
    elif listed:
        shown = ", ".join(f"`{name}`" for name in listed[:8]) + (", …" if len(listed) > 8 else "")
        hint = f"Operators there: {shown}."
    else:
        hint = f"Write `{prefix}` alone for every operator in it."
    return TargetError(f"no `{ref.attribute}` in `{prefix}`", hint=hint)


def _near_paths(path: str) -> list[str]:
    parent, base = os.path.split(path.rstrip("/" + os.sep))
    found: list[str] = []
    if os.path.isdir(parent or "."):
        found += [
            os.path.join(parent, name) for name in nearest(base, _visible(parent or "."), limit=3)
        ]
        # `square` for square.py, and names without their ending
        found += [
            os.path.join(parent, name)
            for name in _visible(parent or ".")
            if os.path.splitext(name)[0] == base
        ]
    if not found:
        same: dict[str, str] = {}
        for count, file in enumerate(folder_files(".")):
            if count >= _MOST_FILES:
                break
            same.setdefault(os.path.basename(file), file)
        found = [same[name] for name in nearest(base, same, limit=3, similarity=0.75)]
    if not found and parent:
        found = [os.path.join(name, base) for name in _near_paths(parent)]
        found = [name for name in found if os.path.exists(name)]
    return list(dict.fromkeys(found))


def _visible(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [
        name
        for name in names
        if not name.startswith(".")
        and (
            name.endswith((".py", ".yaml", ".yml"))
            or (
                os.path.isdir(os.path.join(folder, name))
                and not skipped_folder(os.path.join(folder, name))
            )
        )
    ]
