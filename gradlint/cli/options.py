"""Options that several commands share."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Any

import typer

from gradlint.base.errors import GradlintError
from gradlint.base.text import did_you_mean
from gradlint.cli.completion import completer
from gradlint.model.settings import Settings

#: Options that may be given several times, or not at all.
Texts = list[str] | None


def option(*names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """A typer option whose help shows no default, because the text says it; shells complete its
    values as ``gradlint.cli.completion`` says."""
    return typer.Option(
        *names,
        help=help,
        metavar=metavar,
        show_default=False,
        autocompletion=completer(names),
        **more,
    )


#: What a TARGET may be.
TARGET = (
    "pkg.mod:Name, path/file.py:Name, a module, file or folder, a YAML spec, or torch.ops.ns.name."
)

Inputs = Annotated[
    str | None,
    option(
        "--inputs",
        metavar="SOURCE",
        help="path/file.py:function, pkg.mod:function, or an expression such as "
        '"randn(3, 4), None, dim=-1". Default: sample_inputs, the spec, or inferred.',
    ),
]
Device = Annotated[Texts, option("--device", metavar="LIST", help="cpu,cuda. Default: cpu.")]
Dtype = Annotated[
    Texts,
    option("--dtype", metavar="LIST", help="float64,float32,bfloat16,float16. Default: float64."),
]
Select = Annotated[
    Texts,
    option(
        "--select", metavar="CODES", help="Rules to run: codes, prefixes or names. Default: all."
    ),
]
Ignore = Annotated[Texts, option("--ignore", metavar="CODES", help="Rules to leave out.")]
Order = Annotated[
    int | None,
    option("--order", metavar="1|2", help="2 (default) checks second derivatives too."),
]
Timeout = Annotated[
    float | None,
    option(
        "--timeout",
        metavar="S",
        help="Time limit for loading, for inputs, and for each rule. Default: 60 seconds.",
    ),
]
Jobs = Annotated[
    int | None,
    option("-j", "--jobs", metavar="N", help="Number of workers. Default: number of cores."),
]
Seed = Annotated[
    int | None,
    option(
        "--seed",
        metavar="N",
        help="Seed of all random numbers. Default: a fresh one, which is printed.",
    ),
]
Imports = Annotated[
    Texts,
    option("--import", metavar="MODULE", help="Import this before the targets (repeatable)."),
]
Untrusted = Annotated[
    bool | None,
    option(
        "--untrusted",
        help="Confine the code under test: no network, files read-only but for a scratch folder, "
        "no look at other processes. Exits with 2 where that can't be had.",
    ),
]
SkipOthers = Annotated[
    bool,
    typer.Option(
        "--skip-others",
        help="Leave out files that are no spec and define no operator; exit with 0 if none is "
        "left. For hooks that are given the files of a commit.",
    ),
]
Shard = Annotated[
    str | None,
    option("--shard", metavar="I/N", help="Only the I-th of N parts of the operators."),
]
ChangedSince = Annotated[
    str | None,
    option(
        "--changed-since",
        metavar="REV",
        help="Only operators whose files, or what they import or build, changed since REV of git.",
    ),
]
LastFailed = Annotated[
    bool, option("--last-failed", help="Only operators that failed when they were checked last.")
]
BaselineFile = Annotated[
    str | None,
    option(
        "--baseline",
        metavar="FILE",
        help="Findings in it do not fail the run; `gradlint baseline write` makes it.",
    ),
]
Cache = Annotated[
    str | None,
    option(
        "--cache",
        metavar="FOLDER|URL",
        help="Keep verdicts there, and read those for which nothing changed. Default: none is "
        "kept. Without --seed, the seed is 0.",
    ),
]
NoCache = Annotated[
    bool, option("--no-cache", help="Keep and read no verdicts, whatever the settings say.")
]
Cluster = Annotated[
    str | None,
    option(
        "--cluster",
        metavar="ADDRESS",
        help="Check on the workers of a Dask cluster: the address of its scheduler, such as "
        "tcp://host:8786, or local:N for N processes here.",
    ),
]
Output = Annotated[
    str | None, option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of internal errors.")]


def with_operators(paths: list[str]) -> list[str]:
    """Those of ``paths`` that ``--skip-others`` keeps."""
    from gradlint.targets.resolve import holds_operators

    return [path for path in paths if holds_operators(path)]


def require(package: str, command: str) -> None:
    """Raise if ``package``, which the extra named as ``command`` brings, is not installed.

    Raises:
        GradlintError: it is not; the hint says what to run.
    """
    if importlib.util.find_spec(package) is None:
        raise GradlintError(
            f"{package} is not installed",
            place=command,
            hint=f'run `pip install "gradlint[{command}]"`',
        )


def one_of(value: str, choices: tuple[str, ...], option: str) -> str:
    """``value`` if it is one of ``choices``, else an error that offers the nearest."""
    if value in choices:
        return value
    raise GradlintError(
        f"{value!r} is not one of {', '.join(choices)}",
        place=option,
        hint=did_you_mean(value, choices),
    )


def targets_of(given: Texts, settings: Settings, command: str) -> list[str]:
    """The targets that were typed, or those of the settings.

    Raises:
        GradlintError: there are none.
    """
    targets = given or [*settings.paths]
    if not targets:
        raise GradlintError(
            "no target given",
            place=command,
            hint=f"name one, such as `gradlint {command} path/file.py:Name`, or set `paths` in "
            "[tool.gradlint]; --help shows all kinds",
        )
    return targets


def _text_or_json(value: str) -> str:
    return one_of(value, ("text", "json"), "--output-format")


def _when(value: str) -> str:
    return one_of(value, ("auto", "always", "never"), "--color")


Color = Annotated[
    str,
    option("--color", metavar="WHEN", help="auto (default), always or never.", callback=_when),
]
#: A callback and not a ``Literal``, which typer supports from 0.19 on only.
TextOrJson = Annotated[
    str,
    option(
        "--output-format",
        metavar="FORMAT",
        help="text (default) or json.",
        callback=_text_or_json,
    ),
]
