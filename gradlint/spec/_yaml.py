"""Strict YAML: places are kept, duplicate keys and oversized documents are refused.

Only ``true`` and ``false`` are booleans, ``1e-6`` is a number, dates are texts (the core schema of
YAML 1.2). Only dicts, lists and plain values are constructed.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import yaml

from gradlint.base.errors import Problem, SpecError
from gradlint.base.files import read_regular
from gradlint.base.text import nearest
from gradlint.expressions.limits import MAX_BITS

#: Bytes of a spec file (heuristic: the largest spec of this repository has 2 KiB).
MAX_BYTES = 256 * 1024
#: Values of a spec, aliased ones counted each time (heuristic).
MAX_VALUES = 10_000
#: Mistakes that are shown, so that a file which is something else does not take minutes.
MAX_PROBLEMS = 100
#: Levels of nesting (heuristic; specs need 6).
MAX_LEVELS = 40

_TAG = "tag:yaml.org,2002:"
_RESOLVERS = [
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    (
        "float",
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+0123456789.",
    ),
]

Path = tuple[Any, ...]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _name, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(_pattern), list(_first))


@dataclass(frozen=True)
class Mark:
    """A place in the file, counted from 1."""

    line: int
    column: int


@dataclass
class Document:
    """A YAML document as plain values, with the place of every key and value.

    Args:
        path: the file, as the user gave it.
        data: what it holds.
        keys, nodes: where every key stands, and the node of every value, by path.
        problems: mistakes in spite of which it can be read (duplicate keys, unknown tags).
    """

    path: str
    text: str
    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    keys: dict[Path, Mark] = field(default_factory=dict)
    nodes: dict[Path, yaml.Node] = field(default_factory=dict)

    def key(self, path: Path) -> Mark:
        """Where the key that leads to ``path`` stands; for items of lists, the item."""
        return self.keys.get(path) or self.value(path)

    def value(self, path: Path) -> Mark:
        """Where the value at ``path`` starts, or the nearest value around it."""
        while path and path not in self.nodes:
            path = path[:-1]
        node = self.nodes.get(path)
        return Mark(1, 1) if node is None else _mark(node.start_mark)

    def end(self, path: Path) -> Mark:
        """Where the value at ``path`` ends (exclusive)."""
        node = self.nodes.get(path)
        if isinstance(node, yaml.ScalarNode) and node.value.strip():
            last = self.inside(path, len(node.value.rstrip()) - 1)
            if last != self.value(path):
                return Mark(last.line, last.column + 1)
        return self.value(path) if node is None else _mark(node.end_mark)

    def inside(self, path: Path, offset: int) -> Mark:
        """Where the character number ``offset`` (from 0) of the text at ``path`` stands.

        Quoted, folded and literal texts are followed through their line ends; behind an escape
        such as ``\\n`` the place is that of the text's start.
        """
        node = self.nodes.get(path)
        if not isinstance(node, yaml.ScalarNode):
            return self.value(path)
        wanted = sum(not c.isspace() for c in node.value[:offset])
        written = self.text[node.start_mark.index : node.end_mark.index]
        position = 0
        if node.style in ("|", ">"):
            position = written.find("\n") + 1
        elif node.style in ("'", '"'):
            position = 1
        characters = (c for c in node.value if not c.isspace())
        for index in range(position, len(written)):
            if written[index].isspace():
                continue
            if next(characters, None) != written[index]:
                break
            if wanted == 0:
                return self._mark_at(node.start_mark.index + index)
            wanted -= 1
        return self.value(path)

    def _mark_at(self, index: int) -> Mark:
        before = self.text[:index]
        starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", before))]
        line = bisect_right(starts, index)
        return Mark(line, index - starts[line - 1] + 1)

    def problem(self, mark: Mark, message: str, hint: str = "") -> None:
        """Note a mistake; the last one that is shown ends the search.

        Raises:
            SpecError: there are :data:`MAX_PROBLEMS`.
        """
        self.problems.append(Problem(message, mark.line, mark.column, hint))
        if len(self.problems) >= MAX_PROBLEMS:
            self.stop(f"these are the first {MAX_PROBLEMS} mistakes; the rest was not looked at")

    def stop(self, message: str) -> NoReturn:
        """Refuse the whole document, with all mistakes noted so far.

        Raises:
            SpecError: always.
        """
        raise SpecError(self.path, [*ordered(self.problems), Problem(message)])


def ordered(problems: list[Problem]) -> list[Problem]:
    """Each of ``problems`` once, in the order of their lines."""
    unique = list(dict.fromkeys(problems))
    return sorted(unique, key=lambda problem: (problem.line or 0, problem.column or 0))


def read_document(path: str) -> Document:
    """The one document of the YAML file ``path``.

    Raises:
        SpecError: the file can't be read at all; other mistakes are in ``problems``.
    """
    return parse_document(path, _read(path))


def parse_document(path: str, text: str) -> Document:
    """The one document in ``text``; ``path`` is for messages."""
    document = Document(path, text)
    loader = None
    try:
        _check_levels(path, text)
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.YAMLError as error:
        raise SpecError(path, [_explained(error, text)]) from None
    finally:
        if loader is not None:
            loader.dispose()
    if node is None:
        raise SpecError(
            path, [Problem("the file is empty", 1, 1, "start with `op:` or `forward:`")]
        )
    document.data = _Converter(document).convert(node, (), ())
    return document


def _check_levels(path: str, text: str) -> None:
    """Refuse deep nesting event by event: the composer recurses and would crash the process."""
    level = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        if level > MAX_LEVELS:
            mark = _mark(event.start_mark)
            message = f"nested more than {MAX_LEVELS} levels deep"
            raise SpecError(path, [Problem(message, mark.line, mark.column)])


class _Converter:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0

    def convert(self, node: yaml.Node, path: Path, around: tuple[int, ...]) -> Any:
        self.count += 1
        mark = _mark(node.start_mark)
        if self.count > MAX_VALUES:
            self.refuse(mark, f"more than {MAX_VALUES} values, aliases counted each time")
        if len(path) > MAX_LEVELS:  # aliases can nest deeper than the text does
            self.refuse(mark, f"nested more than {MAX_LEVELS} levels deep")
        if id(node) in around:
            self.refuse(mark, "an alias that contains itself")
        self.document.nodes[path] = node
        around = (*around, id(node))
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self.mapping(node, path, around)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [
                self.convert(part, (*path, index), around) for index, part in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode) and node.tag.removeprefix(_TAG) in (
            *("bool", "null", "int", "float", "str"),
        ):
            return self.scalar(node, mark)
        shown = node.tag.replace(_TAG, "!!")
        self.document.problem(
            mark, f"the tag `{shown}` is not allowed", "a spec holds plain values only"
        )
        return None

    def mapping(self, node: yaml.MappingNode, path: Path, around: tuple[int, ...]) -> Any:
        made: dict[str, Any] = {}
        for key_node, value_node in node.value:
            mark = _mark(key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _TAG + "str":
                shown = getattr(key_node, "value", "")
                hint = f'quote it: "{shown}"' if isinstance(shown, str) and shown else ""
                self.document.problem(mark, "a key must be a text", hint)
                continue
            key = key_node.value
            if key in made:
                first = self.document.keys[(*path, key)].line
                self.document.problem(
                    mark, f"`{key}` is given twice", f"the first is in line {first}"
                )
                continue
            self.document.keys[(*path, key)] = mark
            made[key] = self.convert(value_node, (*path, key), around)
        return made

    def scalar(self, node: yaml.ScalarNode, mark: Mark) -> Any:
        text = node.value
        kind = node.tag.removeprefix(_TAG)
        try:
            if kind == "bool":
                return {"true": True, "false": False}[text.lower()]
            if kind == "null":
                return None
            if kind == "int":
                base = {"0o": 8, "0x": 16}.get(text[:2], 10)
                return self.bounded(int(text, base), mark)
            if kind == "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except (KeyError, ValueError):
            self.document.problem(mark, f"`{text[:40]}` can't be read as {kind}")
            return None
        return text

    def bounded(self, value: int, mark: Mark) -> int | None:
        # Python refuses to print integers of thousands of digits.
        if value.bit_length() <= MAX_BITS:
            return value
        self.document.problem(mark, f"an integer of more than {MAX_BITS} bits")
        return None

    def refuse(self, mark: Mark, message: str) -> None:
        raise SpecError(self.document.path, [Problem(message, mark.line, mark.column)])


def _read(path: str) -> str:
    try:
        if os.path.isdir(path):
            raise SpecError(path, [Problem("is a folder, not a spec file")])
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        hint = ""
        if isinstance(error, FileNotFoundError):
            folder, name = os.path.split(path)
            siblings = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
            found = nearest(name, [s for s in siblings if s.endswith((".yaml", ".yml"))])
            hint = f"did you mean `{os.path.join(folder, found[0])}`?" if found else ""
        raise SpecError(path, [Problem(error.strerror or "can't be read", hint=hint)]) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise SpecError(
            path, [Problem("not UTF-8 text", line, column, "save the file as UTF-8")]
        ) from None


def _mark(mark: Any) -> Mark:
    return Mark(mark.line + 1, mark.column + 1)


#: Part of the scanner's message → what it means, and what to do.
_PLAIN = (
    ("expected a single document", "a second document", "one op a file: split it at `---`"),
    ("but found another document", "a second document", "one op a file: split it at `---`"),
    ("mapping values are not allowed", "a `:` where none is allowed",
     "quote a text that contains `: `, and look at the indentation here and above"),
    ("sequence entries are not allowed", "a list item where none is allowed",
     "put `- ` items on lines of their own"),
    ("could not find expected ':'", "a key without `:`", "write `key: value`"),
    ("did not find expected ',' or ']'", "a list `[` that is not closed", "add `,` or `]`"),
    ("expected ',' or ']'", "a list `[` that is not closed", "add `,` or `]`"),
    ("did not find expected ',' or '}'", "a mapping `{` that is not closed", "add `,` or `}`"),
    ("expected ',' or '}'", "a mapping `{` that is not closed", "add `,` or `}`"),
    ("unexpected end of stream", "a quote that is not closed", "close it"),
    ("undefined alias", "an alias (`*name`) without its anchor (`&name`)", ""),
    ("did not find expected key", "a line that does not fit its block",
     "look at its indentation, and at quotes that are not closed"),
    ("expected <block end>", "a line that does not fit its block",
     "look at its indentation, and at quotes that are not closed"),
    ("did not find expected '-' indicator", "a line that does not fit its list",
     "look at its indentation"),
    ("cannot start any token", "a character that can't start a value", "quote the text"),
    ("nesting", "nested too deeply", ""),
    ("unknown escape character", "an unknown escape (`\\`) between double quotes",
     "use single quotes"),
)  # fmt: skip


def _explained(error: yaml.YAMLError, text: str) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position] if isinstance(error.position, int) else ""
        column = len(before) - (before.rfind("\n") + 1) + 1
        return Problem(
            "a character that YAML doesn't allow", before.count("\n") + 1, column, "remove it"
        )
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = " ".join(filter(None, (getattr(error, "context", ""), getattr(error, "problem", ""))))
    place = Mark(1, 1) if mark is None else _mark(mark)
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or line[place.column - 1 :].startswith("\t"):
        column = line.index("\t") + 1
        return Problem("a tab: YAML indents with spaces", place.line, column, "use spaces")
    for part, message, hint in _PLAIN:
        if part in said:
            return Problem(f"broken YAML: {message}", place.line, place.column, hint)
    return Problem(f"broken YAML: {said or error}", place.line, place.column)
