"""Settings resolved: ``[tool.gradlint]`` in pyproject.toml, then the environment, then flags."""

from __future__ import annotations

import os
import re
import secrets
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from gradlint.base.errors import GradlintError
from gradlint.base.files import read_regular
from gradlint.base.text import did_you_mean, error_line, nearest, short_text
from gradlint.model.report import FailOn
from gradlint.model.settings import (
    DEVICES,
    DTYPES,
    LEVELS,
    Device,
    Dtype,
    Level,
    Sanitizer,
    Settings,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Seeds drawn where none is given lie below this: short enough to type again.
FRESH_SEEDS = 10_000

#: Variables of the environment that set something are named ``GRADLINT_TIMEOUT`` and so on.
PREFIX = "GRADLINT_"

#: The largest seed that torch takes, and more than enough for any other whole number.
_MOST = 2**63 - 1

#: Bytes of a pyproject.toml (heuristic: large projects have 50 KiB).
MAX_BYTES = 2**20

#: Seconds of a time limit: 11 days, which poll(2), whose limit of 2^31 ms is 24, can wait for.
LONGEST = 1_000_000

#: Workers at a time (heuristic: more than any machine has cores; each is a process).
MOST_JOBS = 10_000

#: MiB of a memory limit: 2^62 bytes, half of what setrlimit(2) takes, as what a process holds is
#: added.
MOST_MEMORY = 2**42

#: Words of other libraries for dtypes.
_DTYPE_NAMES = {"double": "float64", "float": "float32", "half": "float16", "bf16": "bfloat16"}

#: Flags (``--device cpu,cuda``) → fields of :class:`Settings`.
_ALIASES = {"device": "devices", "dtype": "dtypes", "import": "imports", "memory": "memory_mb"}


def resolve_settings(
    flags: Mapping[str, Any],
    *,
    rules: Mapping[str, str],
    cwd: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> Settings:
    """:func:`resolved_settings`, without where they come from."""
    return resolved_settings(flags, rules=rules, cwd=cwd, environ=environ, warn=warn)[0]


def resolved_settings(
    flags: Mapping[str, Any],
    *,
    rules: Mapping[str, str],
    cwd: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> tuple[Settings, dict[str, str]]:
    """Defaults, then ``[tool.gradlint]``, then ``GRADLINT_*``, then ``flags``; later ones win.

    Args:
        flags: field name (or the flag's, ``device``) → value; None, an empty list and an empty
            tuple mean "not given". Lists may be given as text with commas.
        rules: code → name of every rule, which ``select`` and ``ignore`` may name.
        cwd: where the search for pyproject.toml starts; the nearest one upward that has a
            ``[tool.gradlint]`` table counts. Default the current directory.
        environ: the environment; default the process's own.
        warn: called with a text for every ``GRADLINT_*`` that is no setting.

    Returns:
        The settings, and where each comes from that is no default: ``file:line:column``, the
        variable or the flag. Without a seed from anywhere a fresh one is drawn; without a number
        of jobs there are as many as this process may use cores.

    Raises:
        GradlintError: an unknown key, a value that can't be used, an unknown rule code, or a
            pyproject.toml that is not valid TOML; with the place and the nearest valid word.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}

    def give(key: str, value: Any, place: Callable[[str], str]) -> None:
        name = key.replace("-", "_")
        name = _ALIASES.get(name, name)
        values[name] = _converted(key, name, value, rules, place)
        origins[name] = place("")

    path, text, table = _pyproject(Path(cwd or os.getcwd()))
    for key, value in table.items():
        give(key, value, partial(_toml_place, path, text, key))
    for name in set(_FILES) & set(values):
        values[name] = _seen_from(os.path.dirname(path), name, values[name])
    promised = {"promised_dtypes": values["dtypes"]} if "dtypes" in values else {}
    for key, value in sorted((os.environ if environ is None else environ).items()):
        if key.startswith(PREFIX):
            name = key.removeprefix(PREFIX).lower()
            if _ALIASES.get(name, name) in _KINDS:
                give(name, value, _always(f"environment variable {key}"))
            else:
                # Not an error: programs around this one may have variables of that name.
                warn(_unknown_variable(key, name))
    for key, value in flags.items():
        if value is not None and value != [] and value != ():
            give(key, value, _always("--" + key.replace("_", "-")))
    # A seed that nobody has had before finds no verdict that was kept.
    values.setdefault("seed", 0 if values.get("cache") else secrets.randbelow(FRESH_SEEDS))
    values.setdefault("jobs", _cores())
    return Settings(**values, **promised), origins


def _seen_from(folder: str, name: str, value: Any) -> Any:
    """The paths that a file in ``folder`` gives the setting ``name``, as seen from the working
    directory. A target such as ``pkg.mod:Name`` is no path, and stays."""
    if isinstance(value, tuple):
        return tuple(_seen_from(folder, name, item) for item in value)
    if value is None or (name == "cache" and "://" in value):
        return value
    moved = os.path.join(folder, value)
    file = os.path.join(folder, value.partition(":")[0])
    return moved if name != "paths" or os.path.exists(file) else value


def names_a_seed(cwd: str | Path | None = None, environ: Mapping[str, str] | None = None) -> bool:
    """Whether pyproject.toml or the environment gives a seed, so that none is drawn afresh."""
    _, _, table = _pyproject(Path(cwd or os.getcwd()))
    return "seed" in table or f"{PREFIX}SEED" in (os.environ if environ is None else environ)


def _unknown_variable(key: str, name: str) -> str:
    near = nearest(name, [*_KINDS, *_ALIASES])
    hint = f"did you mean {PREFIX}{near[0].upper()}?" if near else "it is not looked at"
    return f"environment variable {key}: no setting has that name; {hint}"


def _always(place: str) -> Callable[[str], str]:
    return lambda _item: place


def _cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# -- values ----------------------------------------------------------------------------------------


def _split(value: Any) -> Any:
    """``"a, b"`` and ``["a", "b, c"]`` as a tuple of distinct words; other values as they are."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        return value
    parts = [part.strip() for item in items for part in item.split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))


def _names(value: Any) -> Any:
    """Words as names of devices or dtypes: ``torch.Half`` is ``float16``."""
    words = _split(value)
    if not isinstance(words, tuple):
        return words
    parts = [part.removeprefix("torch.").lower() for part in words]
    return tuple(dict.fromkeys(_DTYPE_NAMES.get(part, part) for part in parts))


def _code(word: str, info: ValidationInfo) -> str:
    """A code, a prefix of codes or a name of a rule, as a code or prefix in upper case."""
    rules: Mapping[str, str] = info.context or {}
    by_name = {name: code for code, name in rules.items()}
    code = by_name.get(word.lower().replace("-", "_"), word.upper())
    if any(rule.startswith(code) for rule in rules):
        return code
    hint = f"{did_you_mean(word, [*rules, *by_name])} `gradlint rules` lists all".lstrip()
    raise PydanticCustomError(
        "unknown_rule", "no rule is called {word}", {"word": short_text(word), "hint": hint}
    )


Whole = Annotated[int, Field(ge=1, le=_MOST)]
Flag = Annotated[bool, BeforeValidator(lambda value: False if value == "" else value)]
Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
#: A comma may be part of a path.
Paths = Annotated[
    tuple[Annotated[str, Field(pattern=r"\S")], ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
]
Codes = Annotated[
    tuple[Annotated[str, AfterValidator(_code)], ...],
    BeforeValidator(_split),
    AfterValidator(lambda codes: tuple(dict.fromkeys(codes))),
]
_FLAG: tuple[Any, str] = (Flag, "true or false")
_COUNT: tuple[Any, str] = (Whole, "a whole number from 1")

#: Field of :class:`Settings` → type of its values, and what to call them in a message.
_KINDS: dict[str, tuple[Any, str]] = {
    "inputs": (Annotated[str, Field(pattern=r"\S")], "a text"),
    "devices": (
        Annotated[tuple[Device, ...], Field(min_length=1), BeforeValidator(_names)],
        f"at least one of {', '.join(DEVICES)}",
    ),
    "require_device": _FLAG,
    "dtypes": (
        Annotated[tuple[Dtype, ...], Field(min_length=1), BeforeValidator(_names)],
        f"at least one of {', '.join(DTYPES)}",
    ),
    "select": (
        Annotated[Codes, AfterValidator(lambda codes: codes or None)],
        "a text or a list of texts",
    ),
    "ignore": (Codes, "a text or a list of texts"),
    "per_target_ignores": (
        Annotated[dict[str, Codes], AfterValidator(lambda table: tuple(table.items()))],
        'a table [tool.gradlint.per-target-ignores] with lines such as "legacy/*.py" = ["GL602"]',
    ),
    "severities": (
        Annotated[
            dict[Annotated[str, AfterValidator(_code)], Level],
            AfterValidator(lambda table: tuple(table.items())),
        ],
        'a table [tool.gradlint.severities] with lines such as GL604 = "info"',
    ),
    "order": (Annotated[int, Field(ge=1, le=2)], "1 or 2"),
    "seed": (Annotated[int, Field(ge=0, le=_MOST)], "a whole number from 0 to 2^63 - 1"),
    "timeout": (
        Annotated[float, Field(gt=0, le=LONGEST, allow_inf_nan=False)],
        f"a number of seconds above 0, at most {LONGEST:,}",
    ),
    "jobs": (
        Annotated[int, Field(ge=1, le=MOST_JOBS)],
        f"a whole number from 1 to {MOST_JOBS:,}",
    ),
    "fail_on": (FailOn, ""),
    "imports": (Words, "a text or a list of texts"),
    "memory_mb": (
        Annotated[int, Field(ge=1, le=MOST_MEMORY)],
        f"a whole number of MiB from 1 to {MOST_MEMORY:,}",
    ),
    "max_calls": _COUNT,
    "sanitizer": (Sanitizer, ""),
    "untrusted": _FLAG,
    "debug": _FLAG,
    "paths": (Paths, "a list of texts"),
    "baseline": (Annotated[str, Field(pattern=r"\S")], "a text"),
    "require_coverage": (Paths, "a list of texts"),
    "max_failures": _COUNT,
    "cluster": (
        Annotated[str, Field(pattern=r"^\s*(local:[1-9][0-9]{0,3}|[a-z]+://\S+)\s*$")],
        "an address such as tcp://host:8786, or local:N",
    ),
    "cache": (Annotated[str, AfterValidator(lambda text: text.strip() or None)], "a text"),
}

#: Field of :class:`Settings` → what it says, for editors and for those who ask for the settings.
DESCRIPTIONS = {
    "inputs": "Where inputs come from: path/file.py:function, pkg.mod:function, or an expression.",
    "devices": "Devices to check on.",
    "require_device": "Whether an absent device is an error, instead of a skip.",
    "dtypes": "Dtypes to check in. An operator that refuses one of them fails.",
    "select": "Rules to run: codes, beginnings of codes, or names.",
    "ignore": "Rules to leave out: codes, beginnings of codes, or names.",
    "per_target_ignores": "Pattern of a target, file or name → rules to leave out there.",
    "severities": "Rule → error, warning or info, in place of its own severity; or off.",
    "order": "2 checks second derivatives, 1 leaves them out.",
    "seed": "Seed of all random numbers.",
    "timeout": "Seconds for loading, for finding inputs, and for each rule.",
    "jobs": "Workers at a time.",
    "fail_on": "The mildest finding that fails a run; inconclusive and uncovered fail more.",
    "imports": "Modules to import before the targets.",
    "memory_mb": "MiB that one operator may allocate.",
    "max_calls": "Forward and backward calls that the checks of one sample may take.",
    "sanitizer": "The tool of NVIDIA's compute-sanitizer to run under.",
    "untrusted": "Whether to confine the code under test.",
    "debug": "Whether to show tracebacks of gradlint itself.",
    "paths": "Targets of a run in which none is named.",
    "baseline": "File of findings that do not fail a run.",
    "require_coverage": "Files and folders, every operator of which must be checked.",
    "max_failures": "Failing operators after which a run ends.",
    "cluster": "Address of a Dask scheduler, or local:N for N processes here.",
    "cache": "Folder or URL where verdicts are kept; empty to keep none.",
}

#: Settings that name files: in pyproject.toml they are seen from its folder.
_FILES = ("paths", "baseline", "require_coverage", "cache")


def toml_key(name: str) -> str:
    """How ``[tool.gradlint]`` spells a field of :class:`Settings`."""
    short = {field: alias for alias, field in _ALIASES.items() if alias not in ("device", "dtype")}
    return short.get(name, name).replace("_", "-")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of ``[tool.gradlint]``, for editors.

    Every spelling that is read is a property: ``fail-on`` and ``fail_on``, ``device`` and
    ``devices``.
    """
    properties: dict[str, Any] = {}
    for name, description in DESCRIPTIONS.items():
        made = {**_plain_schema(name), "description": description}
        aliases = [alias for alias, field in _ALIASES.items() if field == name]
        for spelled in (name, *aliases):
            properties[spelled.replace("_", "-")] = made
            properties[spelled] = made
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gradlint settings: [tool.gradlint] in pyproject.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
    }


_LISTED = {"type": "array", "items": {"type": "string"}}


#: What texts of these settings must match; an empty ``cache`` stands for none.
_PATTERNS = {
    "inputs": r"\S",
    "baseline": r"\S",
    "cache": "",
    "cluster": r"^\s*(local:[1-9][0-9]{0,3}|[a-z]+://\S+)\s*$",
}


def _plain_schema(name: str) -> dict[str, Any]:
    """What the value of one setting may be in a TOML file."""
    if name == "per_target_ignores":
        return {"type": "object", "additionalProperties": _texts(_LISTED)}
    if name == "severities":
        return {"type": "object", "additionalProperties": {"enum": list(LEVELS)}}
    if name in ("select", "ignore", "imports", "paths", "require_coverage"):
        return _texts(_LISTED)
    if name in ("devices", "dtypes"):
        words = list(DEVICES if name == "devices" else DTYPES)
        return _texts({"type": "array", "items": {"enum": words}, "minItems": 1})
    if name in _PATTERNS:
        return {"type": "string", "pattern": _PATTERNS[name]}
    made = _adapter(name).json_schema()
    made.pop("title", None)
    return made


def _texts(listed: dict[str, Any]) -> dict[str, Any]:
    """A list of texts, or one text with commas."""
    return {"anyOf": [listed, {"type": "string"}]}


def _converted(
    key: str, name: str, value: Any, rules: Mapping[str, str], place: Callable[[str], str]
) -> Any:
    """``value`` as the field ``name`` of :class:`Settings` holds it."""
    if name not in _KINDS:
        known = [*_KINDS, *_ALIASES]
        hint = did_you_mean(name, known, "settings are " + ", ".join(known))
        raise GradlintError(f"unknown setting {key!r}", place=place(""), hint=hint)
    expected = _KINDS[name][1]
    # Only texts are converted: in a TOML file, 1 is not true and true is not 1.
    strict = isinstance(value, (bool, int, float))
    try:
        return _adapter(name).validate_python(value, strict=strict, context=rules)
    except ValidationError as error:
        message, hint, item = _explained(error.errors(include_url=False)[0], expected, value)
    except RecursionError:
        message, hint, item = f"expected {expected}, got something nested too deeply", "", ""
    where = place(item)
    # A flag and a variable of the environment name the key already, a line of a file does not.
    message = f"{key}: {message}" if ".toml" in where else message
    raise GradlintError(message, place=where, hint=hint)


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[name][0])


def _explained(wrong: ErrorDetails, expected: str, value: Any) -> tuple[str, str, str]:
    """What is wrong with ``value``, the next step, and the word of it that is wrong."""
    if wrong["type"] == "unknown_rule":
        return wrong["msg"], wrong["ctx"]["hint"], str(wrong["input"])
    if wrong["type"] == "literal_error":
        choices = re.findall(r"'([^']+)'", wrong["ctx"]["expected"])
        given = wrong["input"]
        word = given if isinstance(given, str) else short_text(given)
        message = f"{short_text(given)} is not one of {', '.join(choices)}"
        return message, did_you_mean(word, choices), word
    return f"expected {expected}, got {short_text(value)}", "", ""


# -- pyproject.toml --------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _tool(text: str) -> Any:
    """``tool`` of a pyproject.toml, which nobody changes: a suite that checks many operators meets
    the same file each time."""
    return tomllib.loads(text).get("tool")


def _pyproject(start: Path) -> tuple[str, str, dict[str, Any]]:
    """Path, text and ``[tool.gradlint]`` of the nearest pyproject.toml that has one."""
    start = start.resolve()
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        shown = os.path.relpath(path, start)
        try:
            text = read_regular(path, MAX_BYTES).decode()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except UnicodeDecodeError as error:
            raise GradlintError(f"can't be read: {error}", place=shown) from None
        except OSError as error:
            raise GradlintError(f"can't be read: {error.strerror or error}", place=shown) from None
        try:
            tool = _tool(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\s*\(at line (\d+), column (\d+)\)", str(error))
            place = f"{shown}:{found[1]}:{found[2]}" if found else shown
            message = str(error).replace(found[0], "") if found else str(error)
            raise GradlintError(f"not valid TOML: {message}", place=place) from None
        except RecursionError:
            raise GradlintError("nested too deeply", place=shown) from None
        except ValueError as error:  # an integer of thousands of digits
            raise GradlintError(f"not valid TOML: {error_line(error)}", place=shown) from None
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
        words = r"[ \t]*\.[ \t]*".join(("tool", "gradlint", rf"([\"']?){re.escape(key)}\1"))
        found = re.compile(rf"^[ \t]*\[[ \t]*{words}[ \t]*\]", re.MULTILINE).search(text)
    if found is None:
        return path
    at = found.start() + len(found[0]) - len(found[0].lstrip())
    if item:
        inside = text.find(item, found.end())
        at = inside if inside >= 0 else at
    line = text.count("\n", 0, at) + 1
    return f"{path}:{line}:{at - (text.rfind(chr(10), 0, at) + 1) + 1}"
