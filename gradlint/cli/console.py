"""What the commands write, and where: reports, errors, files."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from gradlint.base.errors import GradlintError
from gradlint.base.files import (
    takes_several,
    why_not_writable,
    write_whole,
    written_by_hand,
)
from gradlint.base.terminal import SafeStream, disarmed, lines_of, obeyed
from gradlint.base.text import error_line
from gradlint.cli import starting as _starting

#: Characters that are written at once.
_AT_ONCE = 2**16


@contextmanager
def safe_streams() -> Iterator[None]:
    """In the body, no unencodable text and no closed stream ends the program, and nothing that is
    written is obeyed by a terminal (see :class:`SafeStream`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, SafeStream(obeyed(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def write(text: str, stream: TextIO | None = None, *, colored: bool = False) -> None:
    """Write ``text``. It is not an error if the reader is gone (``| head``).

    Args:
        text: what a terminal would obey in it is shown, unless ``colored``.
        stream: default the standard output.
        colored: whether ``text`` was laid out by gradlint, and holds colours of its own.
    """
    _starting.clear()
    target = stream or sys.stdout
    if colored:
        target = obeyed(target)
    try:
        target.write(text)
        target.flush()
    except BrokenPipeError:
        close_quietly()
    except OSError as error:
        raise unwritten(error) from None


def write_parts(parts: Iterable[str], *, colored: bool) -> None:
    """:func:`write` each of ``parts``, several at a time."""
    held: list[str] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= _AT_ONCE:
            write("".join(held), colored=colored)
            held, size = [], 0
    write("".join(held), colored=colored)


def write_json(value: Any) -> None:
    """Write ``value`` as indented JSON, in printable ASCII."""
    write(json.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n")


def write_page(add: Callable[[Any, bool], None], *, verbose: int = 0) -> None:
    """Write the :class:`Page` that ``add`` fills, as the standard output can show it; ``add`` is
    told whether in colour."""
    from gradlint.report.text import Page

    options = stream_options(sys.stdout, "auto")
    page = Page(options["width"], ascii=options["ascii"], verbose=verbose)
    add(page, options["color"])
    write(page.text(color=options["color"]), colored=options["color"])


@contextmanager
def worker(*, debug: bool) -> Iterator[None]:
    """The body waits for a worker; its traceback is shown under ``--debug`` if it fails."""
    from gradlint.running import server
    from gradlint.running.call import WorkerFailed

    try:
        yield
    except WorkerFailed as failed:
        if debug and failed.internal:
            write(failed.internal + "\n", sys.stderr)
        raise
    finally:
        server.stop()


def write_file(path: str, parts: str | bytes | Iterable[str]) -> None:
    """Write ``parts`` to ``path`` as UTF-8, whole or not at all; ``-`` is the standard output."""
    pieces = [parts] if isinstance(parts, (str, bytes)) else parts
    if path == "-":
        for piece in pieces:
            write(str(piece))
        return
    try:
        write_whole(path, pieces)
    except OSError as error:
        raise GradlintError(
            f"can't be written: {error.strerror or error}",
            place=path,
            hint="what was there before is as it was; name another file, or make room",
        ) from None


def check_writable(path: str, option: str, *, replacing: tuple[str, ...] = ()) -> None:
    """Raise, before anything is run, if nothing could be written to ``path``, or if it would take
    the place of what someone has written: an operator, its inputs, a spec or settings.

    Args:
        replacing: endings of such files that the user may mean to replace.
    """
    if path == "-":
        return
    why, step = why_not_writable(path)
    if why:
        raise GradlintError(f"{path}: {why}", place=option, hint=step)
    lost = written_by_hand(path)
    if lost and not lost.lower().endswith(replacing):
        what = path if lost == os.path.abspath(path) else f"{path} leads to {lost}, which"
        raise GradlintError(
            f"{what} holds source, a spec or settings, and would be overwritten",
            place=option,
            hint="name another file, such as one that ends with .json or .txt",
        )


def check_distinct(paths: Iterable[tuple[str, str]]) -> None:
    """Raise if two reports would be written to the same file.

    Args:
        paths: option and path of each.
    """
    seen: set[str] = set()
    for option, path in paths:
        if path == "-" or takes_several(path):
            continue
        real = os.path.realpath(path)
        if real in seen:
            raise GradlintError(
                f"{path}: another report is written to it", place=option, hint="name another file"
            )
        seen.add(real)


def failures(writers: Iterable[Callable[[], None]]) -> list[GradlintError]:
    """Call every one of ``writers``, whatever the others did; the errors of those that failed."""
    errors = []
    for writer in writers:
        try:
            writer()
        except GradlintError as error:
            errors.append(error)
    return errors


def print_error(error: GradlintError) -> None:
    """Show what the user did wrong: what, where, next step."""
    print_lines("error: ", str(error) or type(error).__name__)


def print_errors_of(run: Any, *, debug: bool) -> None:
    """Show the user's mistakes, and gradlint's own failures, in a run: each once."""
    for error in {str(error): error for error in run.usage}.values():
        print_error(error)
    for text in run.internal:
        what, _, traceback = text.partition("\n")
        if debug:
            write(traceback + "\n", sys.stderr)
        print_internal(what, debug=debug)


def print_warning(text: str) -> None:
    """Show what does not stop the command."""
    print_lines("warning: ", text)


def print_lines(label: str, text: str) -> None:
    """Write ``text`` behind ``label`` to the standard error; further lines are indented, so that
    none of them can pass for another message."""
    write(label + "\n  ".join(map(disarmed, lines_of(text))) + "\n", sys.stderr)


def print_usage_error(error: Any) -> None:
    """Show what typer found wrong with the words of the command line, as it would itself."""
    context = getattr(error, "ctx", None)
    if context is not None:
        write(
            f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n\n", sys.stderr
        )
    print_lines("Error: ", error.format_message())


def print_internal_error(error: Exception, *, debug: bool) -> None:
    """Show an internal error in one line; with its traceback under ``--debug``."""
    if debug:
        write("".join(traceback.format_exception(error)), sys.stderr)
    print_internal(error_line(error), debug=debug)


def print_internal(what: str, *, debug: bool) -> None:
    """The line for an internal error."""
    how = "" if debug else ", with the output of --debug"
    print_lines("internal error: ", f"{what}\nThis is a bug in gradlint; please report it{how}.")


def flush() -> None:
    """Flush the standard output now, where a broken pipe can still be caught."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritten(error) from None


def unwritten(error: OSError) -> GradlintError:
    """The error for output that could not be written; the rest of it goes nowhere."""
    close_quietly()
    return GradlintError(f"can't be written: {error.strerror or error}", place="standard output")


def close_quietly() -> None:
    """Discard what is still buffered for a reader that is gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(null, sys.stdout.fileno())


def stream_options(stream: TextIO, color: str) -> dict[str, Any]:
    """What ``render`` needs to know of ``stream``; ``color`` is auto, always or never."""
    from gradlint.report.render import stream_options as look

    options = look(stream)
    if color != "auto":
        options["color"] = color == "always"
    return options
