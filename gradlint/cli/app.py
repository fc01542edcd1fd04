"""The commands, each imported when it is used, and what is done with their errors."""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gradlint.base.errors import GradlintError
from gradlint.base.text import nearest
from gradlint.cli import console as _console

#: Command → module of the same name in this package, with a function of that name. In the order
#: in which ``--help`` lists them.
COMMANDS = (
    *("check", "fix", "list", "sweep", "replay", "report", "overrides", "explain", "rules"),
    *("init", "validate", "schema", "baseline", "record", "watch", "serve", "kernels", "env"),
)

#: Plain text instead of boxes: readable in 40 columns, in ASCII and in a pipe, and nothing that the
#: user typed is taken for markup.
_SETTINGS: dict[str, Any] = {"rich_markup_mode": None}
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class LazyGroup(TyperGroup):
    """A group whose commands are imported when one of them is called or described."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now; None if the name is unknown."""
        return command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As usual, but for a mistyped command the nearest one is offered."""
        known = ctx.resilient_parsing or not args or args[0] in COMMANDS
        if not known and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)


def command(name: str) -> Any:
    """The command ``name``, made from the function, or the group, of that name in its module."""
    found = getattr(importlib.import_module(f"gradlint.cli.{name}"), name)
    if isinstance(found, typer.Typer):
        single = found
        single.info.context_settings = dict(_CONTEXT)
    else:
        single = typer.Typer(pretty_exceptions_enable=False, add_completion=False, **_SETTINGS)
        single.command(name, context_settings=dict(_CONTEXT))(found)
    made = typer.main.get_command(single)
    # The whole first sentence: typer would cut it off at the end of the line.
    for part in (made, *getattr(made, "commands", {}).values()):
        part.short_help = " ".join((part.help or "").split("\n\n")[0].split())
    return made


def _version(wanted: bool) -> None:
    if wanted:
        import gradlint

        print(f"gradlint {gradlint.__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    pretty_exceptions_enable=False,
    context_settings=dict(_CONTEXT),
    **_SETTINGS,
)


@app.callback()
def gradlint(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Proves or refutes the gradients of PyTorch operators."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: the words after the program's name; default those it was called with.

    Returns:
        The exit code: 0 clean, 1 findings, 2 usage, 3 internal error, 5 nothing was checked,
        130 interrupted.
    """
    words = list(sys.argv[1:] if args is None else args)
    with _console.safe_streams():
        return _ran(words)


def _ran(words: list[str]) -> int:
    try:
        code = app(words or ["--help"], prog_name="gradlint", standalone_mode=False)
        _console.flush()
        if not words:
            return 2  # nothing was asked for, so nothing was checked
        return code if isinstance(code, int) else 0
    except GradlintError as error:
        _console.print_error(error)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        return _failed(error, debug="--debug" in words)


def _failed(error: Exception, *, debug: bool) -> int:
    """Show an unexpected error; returns the exit code."""
    if isinstance(error, BrokenPipeError):
        _console.close_quietly()
        return 141
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        _console.print_error(_console.unwritten(error))  # typer wrote to a full disk
        return GradlintError.exit_code
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        _console.print_usage_error(error)
        return int(error.exit_code)
    _console.print_internal_error(error, debug=debug)
    return 3
