"""Settings of a run: ``[tool.gradlint]`` in pyproject.toml, environment, flags, in that order.

``Settings`` is plain and picklable: it travels to the workers.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import secrets
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradlint.base.errors import GradlintError

DTYPES = ("float64", "float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
FAIL_ON = ("error", "warning", "info", "inconclusive")

#: Seeds drawn where none is given lie below this: short enough to type again.
FRESH_SEEDS = 10_000

#: Variables of the environment that set something are named ``GRADLINT_TIMEOUT`` and so on.
PREFIX = "GRADLINT_"

#: Words of other libraries for dtypes.
_DTYPE_NAMES = {"double": "float64", "float": "float32", "half": "float16", "bf16": "bfloat16"}

# Flags (``--device cpu,cuda``) → fields.
_ALIASES = {"device": "devices", "dtype": "dtypes", "import": "imports", "memory": "memory_mb"}


@dataclass(frozen=True)
class Settings:
    """What one run was asked for.

    Args:
        inputs: the ``--inputs`` text, or None to use the op's own samples or inference.
        devices: device types asked for.
        require_device: an absent device is an error (exit 2), not a skip.
        dtypes: dtypes asked for by name; None means float64, or what the op accepts.
        select: rule codes or prefixes to run; None means all.
        ignore: rule codes or prefixes to leave out.
        per_target_ignores: pairs of a pattern, which fits a target, its file or the op's name with
            ``*`` and ``?`` as in file names, and the codes or prefixes to leave out there.
        order: 1 for first order only, 2 for second order too.
        seed: seed of every direction, cotangent and inferred value.
        timeout: seconds that one phase (loading, finding inputs, one rule) may take.
        jobs: workers at a time.
        fail_on: one of :data:`FAIL_ON`.
        imports: modules to import before a target is loaded (``--import``).
        memory_mb: address space in MiB that one worker may allocate beyond what torch holds;
            None for a share of what the machine has free.
        max_calls: forward and backward calls that the checks of one sample may take together while
            nothing disagrees; None for as many as they need.
        sanitizer: the tool of compute-sanitizer that the checks run under, one of
            :data:`SANITIZERS`; None for none.
        debug: show tracebacks of gradlint itself.
    """

    inputs: str | None = None
    devices: tuple[str, ...] = ("cpu",)
    require_device: bool = False
    dtypes: tuple[str, ...] | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    per_target_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    order: int = 2
    seed: int = 0
    timeout: float = 60.0
    jobs: int = 1
    fail_on: str = "warning"
    imports: tuple[str, ...] = ()
    memory_mb: int | None = None
    max_calls: int | None = None
    sanitizer: str | None = None
    debug: bool = False


class _Wrong(Exception):
    """A value that can't be used: what is wrong, and the next step."""

    def __init__(self, message: str, hint: str = "", item: str = "") -> None:
        super().__init__(message)
        self.message, self.hint, self.item = message, hint, item


def resolve_settings(
    flags: Mapping[str, Any],
    *,
    rules: Mapping[str, str],
    cwd: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Defaults, then ``[tool.gradlint]``, then ``GRADLINT_*``, then ``flags``; later ones win.

    Args:
        flags: field name (or the flag's, ``device``) → value; None, an empty list and an empty
            tuple mean "not given". Lists may be given as text with commas.
        rules: code → name of every rule, which ``select`` and ``ignore`` may name.
        cwd: where the search for pyproject.toml starts; the nearest one upward that has a
            ``[tool.gradlint]`` table counts. Default the current directory.
        environ: the environment; default the process's own.

    Returns:
        The settings. Without a seed from anywhere a fresh one is drawn; without a number of
        jobs there are as many as this process may use cores.

    Raises:
        GradlintError: an unknown key, a value that can't be used, an unknown rule code, or a
            pyproject.toml that is no TOML; with the place and the nearest valid word.
    """
    values: dict[str, Any] = {}
    converters = _converters(rules)
    path, text, table = _pyproject(Path(cwd or os.getcwd()))
    for key, value in table.items():
        _set(values, converters, key, value, lambda key, item: _toml_place(path, text, key, item))
    for key, value in sorted((os.environ if environ is None else environ).items()):
        if key.startswith(PREFIX):
            name = key.removeprefix(PREFIX).lower()
            _set(values, converters, name, value, _always(f"environment variable {key}"))
    for key, value in flags.items():
        if value is not None and value != [] and value != ():
            _set(values, converters, key, value, lambda key, _: "--" + key.replace("_", "-"))
    values.setdefault("seed", secrets.randbelow(FRESH_SEEDS))
    values.setdefault("jobs", _cores())
    values.setdefault("jobs", _cores())
    return Settings(**values)


def _cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _set(
    values: dict[str, Any],
    converters: Mapping[str, Callable[[Any], Any]],
    key: str,
    value: Any,
    place: Callable[[str, str], str],
) -> None:
    name = key.replace("-", "_")
    name = _ALIASES.get(name, name)
    if name not in converters:
        raise GradlintError(
            f"unknown setting {key!r}",
            place=place(key, ""),
            hint=_nearest(name, [*converters, *_ALIASES]),
        )
    try:
        values[name] = converters[name](value)
    except _Wrong as wrong:
        where = place(key, wrong.item)
        # A flag and a variable of the environment name the key already, a line of a file does not.
        message = f"{key}: {wrong.message}" if ".toml" in where else wrong.message
        raise GradlintError(message, place=where, hint=wrong.hint) from None


def _always(place: str) -> Callable[[str, str], str]:
    return lambda _key, _item: place


# -- values ----------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong(f"expected a text, got {value!r}")
    return value


def _flag(value: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False, "": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise _Wrong(f"expected true or false, got {value!r}")
    return value


def _whole(least: int, most: int = 2**63 - 1) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        wanted = f"a whole number from {least}" + (f" to {most}" if most < 2**63 - 1 else "")
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,19}\s*", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _Wrong(f"expected {wanted}, got {value!r}")
        return value

    return convert


def _duration(value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise _Wrong(f"expected a number of seconds above 0, got {value!r}")
    return number


def _words(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise _Wrong(f"expected a text or a list of texts, got {value!r}")
    parts = [part.strip() for item in items for part in item.split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))


def _some_of(
    choices: tuple[str, ...], names: Mapping[str, str]
) -> Callable[[Any], tuple[str, ...]]:
    one = _one_of(choices)

    def convert(value: Any) -> tuple[str, ...]:
        parts = [part.removeprefix("torch.").lower() for part in _words(value)]
        if not parts:
            raise _Wrong("expected at least one", f"choose from {', '.join(choices)}")
        return tuple(dict.fromkeys(one(names.get(part, part)) for part in parts))

    return convert


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in choices:
            hint = _nearest(str(value), choices)
            raise _Wrong(f"{value!r} is not one of {', '.join(choices)}", hint, str(value))
        return str(value)

    return convert


def _codes(rules: Mapping[str, str]) -> Callable[[Any], tuple[str, ...]]:
    """Codes, prefixes of codes and names of ``rules``, as codes and prefixes in upper case."""
    by_name = {name: code for code, name in rules.items()}

    def convert(value: Any) -> tuple[str, ...]:
        codes = []
        for part in _words(value):
            code = by_name.get(part.lower().replace("-", "_"), part.upper())
            if not any(rule.startswith(code) for rule in rules):
                near = _near(part, [*rules, *by_name])
                hint = f"{near}`gradlint rules` lists all"
                raise _Wrong(f"no rule is called {part!r}", hint, part)
            codes.append(code)
        return tuple(dict.fromkeys(codes))

    return convert


def _by_pattern(
    codes: Callable[[Any], tuple[str, ...]],
) -> Callable[[Any], tuple[tuple[str, tuple[str, ...]], ...]]:
    def convert(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if not isinstance(value, dict):
            raise _Wrong(
                f"expected a table, got {value!r}",
                "write [tool.gradlint.per-target-ignores] and lines such as "
                '"legacy/*.py" = ["GL602"]',
            )
        return tuple((str(pattern), codes(item)) for pattern, item in value.items())

    return convert


def _converters(rules: Mapping[str, str]) -> dict[str, Callable[[Any], Any]]:
    codes = _codes(rules)
    return {
        "inputs": _text,
        "devices": _some_of(DEVICES, {}),
        "require_device": _flag,
        "dtypes": _some_of(DTYPES, _DTYPE_NAMES),
        "select": lambda value: codes(value) or None,
        "ignore": codes,
        "per_target_ignores": _by_pattern(codes),
        "order": _whole(1, 2),
        "seed": _whole(0),
        "timeout": _duration,
        "jobs": _whole(1),
        "fail_on": _one_of(FAIL_ON),
        "imports": _words,
        "memory_mb": _whole(1),
        "max_calls": _whole(1),
        "sanitizer": _one_of(SANITIZERS),
        "debug": _flag,
    }


def _nearest(word: str, choices: Collection[str]) -> str:
    return _near(word, choices).rstrip() or "known are " + ", ".join(choices)


def _near(word: str, choices: Collection[str]) -> str:
    folded = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), folded, 1, 0.5)
    return f"did you mean {folded[near[0]]}? " if near else ""


# -- pyproject.toml --------------------------------------------------------------------------------


def _pyproject(start: Path) -> tuple[str, str, dict[str, Any]]:
    """Path, text and ``[tool.gradlint]`` of the nearest pyproject.toml that has one."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    start = start.resolve()
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        shown = os.path.relpath(path, start)
        try:
            text = path.read_bytes().decode()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise GradlintError(f"can't be read: {error}", place=shown) from None
        try:
            tool = tomllib.loads(text).get("tool")
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\s*\(at line (\d+), column (\d+)\)", str(error))
            place = f"{shown}:{found[1]}:{found[2]}" if found else shown
            message = str(error).replace(found[0], "") if found else str(error)
            raise GradlintError(f"no valid TOML: {message}", place=place) from None
        table = tool.get("gradlint") if isinstance(tool, dict) else None
        if table is not None and not isinstance(table, dict):
            raise GradlintError("tool.gradlint: expected a table", place=shown)
        if table is not None:
            return shown, text, table
    return "", "", {}


def _toml_place(path: str, text: str, key: str, item: str) -> str:
    """``path:line:column`` of ``item`` in the value of ``key``, or of the key."""
    header = re.search(r"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*gradlint[ \t]*\]", text, re.MULTILINE)
    start = header.end() if header else 0
    found = re.compile(rf"^[ \t]*([\"']?){re.escape(key)}\1[ \t]*=", re.MULTILINE).search(
        text, start
    )
    if found is None:
        return path
    at = found.start() + len(found[0]) - len(found[0].lstrip())
    if item:
        inside = text.find(item, found.end())
        at = inside if inside >= 0 else at
    line = text.count("\n", 0, at) + 1
    return f"{path}:{line}:{at - (text.rfind(chr(10), 0, at) + 1) + 1}"
