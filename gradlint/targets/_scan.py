"""Which operators a file defines, found in its syntax tree without executing it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gradlint.base.files import read_regular
from gradlint.model.report import Location
from gradlint.targets._static import FunctionNode, StaticModule, find_class, lineage, members
from gradlint.targets.source_file import MAX_BYTES, bindings, dotted, header, shown_path

#: A file without any of these defines no operator that a listing would name; it is not parsed.
_HINTS = re.compile(
    rb"Function\b|sample_inputs|custom_op|triton_op|def\s+(backward|vjp|setup_context)\b"
)

_CUSTOM_OP = ("custom_op", "triton_op")


@dataclass(frozen=True)
class Listed:
    """An operator found in a file: its qualified name, kind (as in ``KINDS``) and place."""

    name: str
    kind: str
    location: Location


def may_hold_operators(path: str) -> bool:
    """Whether the text of a file mentions anything that an operator is defined with.

    Reading is about a hundred times cheaper than parsing, and rules out most files of a package.
    """
    try:
        return _HINTS.search(read_regular(path, MAX_BYTES)) is not None
    except OSError:
        return False


def operators(module: StaticModule) -> list[Listed]:
    """The operators that ``module`` defines, in the order of their lines.

    These are subclasses of ``torch.autograd.Function`` that have a forward; modules, functions
    and callable classes that declare ``sample_inputs``; modules and functions that call ``.apply``
    of a Function of the same file, themselves or through functions of it, and do more than that;
    and functions registered as custom ops. See :func:`left_out` for the others.
    """
    kinds: dict[str, str] = {}
    functions = _functions(module)
    bases = only_bases(module)
    applying = _applying(module, functions)
    for name, node in module.classes.items():
        if name in functions:
            if name not in bases:
                kinds[name] = "function"
        elif _lists_itself(module, node, functions, applying):
            kinds[name] = "module" if _is_module(module, node) else "callable"
    for name in _declared(module):
        if name in module.functions:
            kinds.setdefault(name, "callable")
    for name in applying:
        if _is_op_of_its_own(module.functions[name]):
            kinds.setdefault(name, "callable")
    kinds.update(dict.fromkeys(_custom_ops(module), "library"))
    found = [Listed(name, kind, place_of(module, name)) for name, kind in kinds.items()]
    return sorted(found, key=lambda item: (item.location.line, item.name))


def left_out(module: StaticModule) -> list[tuple[str, str]]:
    """Name of, and reason for, everything in ``module`` that looks like an operator and that
    :func:`operators` does not name: base classes, Functions that only a call of something makes,
    modules without a backward of their own, functions that do nothing but call ``.apply``, and
    those that return a function."""
    named = {item.name for item in operators(module)}
    functions = _functions(module)
    found = []
    for name, node in module.classes.items():
        if name in named:
            continue
        if name in functions:
            found.append((name, "a base class"))
        elif _is_module(module, node) and "forward" in members(node):
            found.append((name, "no backward of its own"))
    for name, node in _classes_in_functions(module):
        if is_function_class(module, node):
            found.append((name, "defined when a function is called"))
    for name in sorted(_applying(module, functions) - named):
        if _only_applies(module.functions[name]):
            found.append((name, "only calls a Function"))
        elif _makes_a_function(module.functions[name]):
            found.append((name, "returns a function"))
    return found


def only_bases(module: StaticModule) -> set[str]:
    """The Functions of ``module`` that are only meant as base classes."""
    nodes = ((name, module.classes[name]) for name in _functions(module))
    return {
        name for name, node in nodes if not _has_forward(module, node) or _is_base(module, node)
    }


def _functions(module: StaticModule) -> set[str]:
    return {name for name, node in module.classes.items() if is_function_class(module, node)}


def _classes_in_functions(module: StaticModule) -> Iterator[tuple[str, ast.ClassDef]]:
    """(qualified name, class) of the classes that the functions and methods of ``module`` define,
    which nothing can name before they are called."""
    tree = module.source.tree
    waiting: list[tuple[ast.AST, str, bool]] = [(tree, "", False)] if tree is not None else []
    while waiting:
        node, prefix, called = waiting.pop()
        for part in reversed(list(ast.iter_child_nodes(node))):
            if isinstance(part, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                called_here = called or not isinstance(part, ast.ClassDef)
                waiting.append((part, f"{prefix}{part.name}.", called_here))
            elif not isinstance(part, ast.expr):
                waiting.append((part, prefix, called))
        if called and isinstance(node, ast.ClassDef):
            yield prefix.removesuffix("."), node


def _applying(module: StaticModule, functions: set[str]) -> set[str]:
    """The functions at module level that call ``.apply`` of a Function of the file, also through
    one another."""
    found: set[str] = set()
    if not functions:
        return found
    while True:
        more = {
            name
            for name, node in module.functions.items()
            if name not in found and _applies(module, node, functions, found)
        }
        if not more:
            return found
        found |= more


def _is_op_of_its_own(node: FunctionNode) -> bool:
    """Whether a function that applies a Function is an operator: it takes arguments and returns
    what it computes, and is no test, no training step, and not the Function by another name."""
    if node.name.startswith(("_", "test")) or not (node.args.posonlyargs + node.args.args):
        return False
    calls = {
        part.func.attr if isinstance(part.func, ast.Attribute) else dotted(part.func)
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
    }
    if calls & _DIFFERENTIATING or _only_applies(node):
        return False
    return any(value is not None for value in _returned(node)) and not _makes_a_function(node)


def _returned(node: FunctionNode) -> Iterator[ast.expr | None]:
    """What the ``return`` statements of a function return, without those of functions in it."""
    inside: list[ast.AST] = list(node.body)
    while inside:
        part = inside.pop()
        if isinstance(part, ast.Return):
            yield part.value
        elif not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside += ast.iter_child_nodes(part)


def _makes_a_function(node: FunctionNode) -> bool:
    """Whether a function returns nothing but functions that it defines: the operator is what it
    returns, for its arguments."""
    inner = {part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef)}
    values = [value for value in _returned(node) if value is not None]
    return bool(values) and all(
        isinstance(value, ast.Lambda) or dotted(value) in inner - {node.name} for value in values
    )


#: Calls in functions that differentiate an operator, and are none themselves.
_DIFFERENTIATING = {"backward", "grad", "gradcheck", "gradgradcheck"}


def _only_applies(node: FunctionNode) -> bool:
    """Whether a function only calls another one with its own arguments or constants."""
    body = _statements(node)
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return False
    call = body[0].value
    if not isinstance(call, ast.Call):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    given = [item.value if isinstance(item, ast.Starred) else item for item in given]
    return all(isinstance(item, (ast.Name, ast.Constant)) for item in given)


def _statements(node: FunctionNode) -> list[ast.stmt]:
    """The body of a function without its docstring."""
    return [
        statement
        for statement in node.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]


def kind_of(module: StaticModule, name: str) -> str:
    """Kind of the operator called ``name`` as far as the text shows it, else "unknown"."""
    if name in module.classes:
        node = module.classes[name]
        if is_function_class(module, node):
            return "function"
        return "module" if _is_module(module, node) else "unknown"
    if name in _custom_ops(module):
        return "library"
    return "callable" if name in module.functions and "." not in name else "unknown"


def place_of(module: StaticModule, name: str) -> Location:
    """Where ``name`` is bound; the top of the file where the text does not show it."""
    node = module.classes.get(name) or module.functions.get(name)
    if node is not None:
        return header(module.source, node)
    value = module.assigned.get(name)
    return module.source.span(value) if value else Location(shown_path(module.source.path), 1)


def is_function_class(module: StaticModule, node: ast.ClassDef) -> bool:
    """Whether a class is a ``torch.autograd.Function``, as far as the text shows it."""
    known, ends = lineage(module, node)
    if any(_names_function(end) for end in ends):
        return True
    # A base class whose source is not found: what the class looks like decides.
    unknown = [end for end in ends if not end.startswith(("torch.", "abc.", "typing.", "enum."))]
    unknown = [end for end in unknown if "." in end or end not in _BUILTIN_BASES]
    return bool(unknown) and _function_style(node) and not _names_module(known, ends)


_BUILTIN_BASES = {"object", "Exception", "dict", "list", "tuple", "int", "float", "str", "type"}


def _names_function(end: str) -> bool:
    last = end.rpartition(".")[2]
    if end.startswith("torch."):
        return end.startswith("torch.autograd") and last.endswith("Function")
    return last.endswith("Function")


def _names_module(known: list[tuple[StaticModule, ast.ClassDef]], ends: list[str]) -> bool:
    return any(
        end.startswith("torch.nn.") or end.rpartition(".")[2].endswith("Module") for end in ends
    )


def _is_module(module: StaticModule, node: ast.ClassDef) -> bool:
    return _names_module(*lineage(module, node))


def _function_style(node: ast.ClassDef) -> bool:
    bound = members(node)
    forward = bound.get("forward")
    if not isinstance(forward, ast.FunctionDef) or not {"backward", "vjp", "setup_context"} & set(
        bound
    ):
        return False
    first = (forward.args.posonlyargs + forward.args.args)[:1]
    static = any(dotted(decorator) == "staticmethod" for decorator in forward.decorator_list)
    return static or bool(first and first[0].arg in ("ctx", "context"))


def _has_forward(module: StaticModule, node: ast.ClassDef) -> bool:
    known, ends = lineage(module, node)
    for _, ancestor in known:
        forward = members(ancestor).get("forward")
        if forward is not None:
            return not _abstract(forward)
    return any(not end.startswith("torch.") for end in ends) and "backward" in members(node)


def _is_base(module: StaticModule, node: ast.ClassDef) -> bool:
    """Whether a Function class is only meant as a base class: it has an abstract method, or it has
    subclasses (or a name that asks for them) and a class method uses ``cls.name``, or a backward,
    that only a subclass defines."""
    known, _ = lineage(module, node)
    bound: dict[str, ast.stmt] = {}
    for _, ancestor in reversed(known):
        bound.update(members(ancestor))
    if any(_marked_abstract(statement) for statement in bound.values()):
        return True
    if node not in _bases_within(module) and not re.search(r"Base|Abstract|Generic", node.name):
        return False
    defined = {name for name, statement in bound.items() if not _abstract(statement)}
    if "backward" in bound and "backward" not in defined:
        return True
    return bool({name for _, item in known for name in _used_of_class(item)} - defined)


@lru_cache(maxsize=64)
def _bases_within(module: StaticModule) -> set[ast.AST | str]:
    """What the classes of ``module`` are derived from, as nodes where their source is known."""
    return {
        find_class(module, dotted(base))[-1]
        for other in module.classes.values()
        for base in other.bases
        if dotted(base)
    }


def _marked_abstract(method: ast.stmt) -> bool:
    return isinstance(method, ast.FunctionDef) and any(
        dotted(decorator).endswith("abstractmethod") for decorator in method.decorator_list
    )


def _used_of_class(node: ast.ClassDef) -> Iterator[str]:
    """Attributes of ``cls`` that class methods use, without those that torch defines."""
    for method in bindings(node.body):
        if not isinstance(method, ast.FunctionDef) or not method.args.args:
            continue
        if "classmethod" not in map(dotted, method.decorator_list):
            continue
        cls = method.args.args[0].arg
        for part in ast.walk(method):
            if (
                isinstance(part, ast.Attribute)
                and isinstance(part.value, ast.Name)
                and part.value.id == cls
                and not part.attr.startswith("__")
                and part.attr not in _OF_TORCH
            ):
                yield part.attr


_OF_TORCH = ("apply", "forward", "backward", "vjp", "jvp", "vmap", "setup_context", "name")


def _abstract(method: ast.stmt) -> bool:
    if not isinstance(method, ast.FunctionDef):
        return False
    body = _statements(method)
    if _marked_abstract(method):
        return True
    if not body or all(isinstance(statement, ast.Pass) for statement in body):
        return True
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    return dotted(raised) == "NotImplementedError"


def _lists_itself(
    module: StaticModule, node: ast.ClassDef, functions: set[str], applying: set[str]
) -> bool:
    known, _ = lineage(module, node)
    bound = {name for _, ancestor in known for name in members(ancestor)}
    if "sample_inputs" in bound:
        return bool(bound & {"forward", "__call__"}) or _is_module(module, node)
    if not (_is_module(module, node) and "forward" in bound):
        return False
    return any(_applies(module, part, functions, applying) for _, part in known[:1])


def _applies(
    module: StaticModule,
    node: ast.ClassDef | FunctionNode,
    functions: set[str],
    applying: set[str],
) -> bool:
    """Whether ``node`` calls ``.apply`` of one of ``functions``, or one of the functions
    ``applying`` it."""
    for part in ast.walk(node):
        if not isinstance(part, ast.Call):
            continue
        called = dotted(part.func)
        if called in applying:
            return True
        if called in module.assigned:
            called = dotted(module.assigned[called])
        owner, _, last = called.rpartition(".")
        if last == "apply" and _local_name(module, owner) in functions:
            return True
    return False


def _local_name(module: StaticModule, name: str) -> str:
    found = find_class(module, name) if name else name
    return found[1] if not isinstance(found, str) and found[0] is module else ""


def _declared(module: StaticModule) -> Iterator[str]:
    """Names that ``name.sample_inputs = …`` at module level gives samples."""
    for statement in bindings(module.source.tree.body if module.source.tree else []):
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and target.attr == "sample_inputs":
                yield dotted(target.value)


def _custom_ops(module: StaticModule) -> Iterator[str]:
    for name, function in module.functions.items():
        if any(_makes_custom_op(module, decorator) for decorator in function.decorator_list):
            yield name
    for name, value in module.assigned.items():
        if _makes_custom_op(module, value):
            yield name


def _makes_custom_op(module: StaticModule, expression: ast.expr) -> bool:
    # custom_op("a::b", mutates_args=()) as a decorator, called on a function, or given one.
    while isinstance(expression, ast.Call):
        if module.absolute(dotted(expression.func)).rpartition(".")[2] in _CUSTOM_OP:
            return True
        expression = expression.func
    return False
