"""What a family of candidates looks at: the fault, the operator's source, and what backward has in
hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import libcst

from gradlint.repair.candidate import Edit
from gradlint.repair.tree import Tree


@dataclass(frozen=True)
class Known:
    """An argument of a sample: the shape of a tensor, or the value of what is none, as text."""

    name: str
    shape: tuple[int, ...] | None = None
    value: str | None = None


@dataclass(frozen=True)
class Fault:
    """A finding, as far as candidates depend on it.

    Args:
        code, cause, cause_text, message, help, input: of the finding.
        start, end: the offsets of its place in the source.
        label: what stands at the place, as in "returned for `x`".
        others: other inputs with the same fault.
        known: the arguments that it was found at.
    """

    code: str
    message: str
    start: int
    end: int
    label: str = ""
    cause: str = ""
    cause_text: str = ""
    help: str = ""
    input: str = ""
    others: tuple[str, ...] = ()
    known: tuple[Known, ...] = ()


_SEQUENCES = (libcst.Tuple, libcst.List)


class NoPlace(Exception):
    """No change can be placed in the source; says why."""


@dataclass
class Method:
    """A method of the operator's class, in whichever class of the file it is written.

    Args:
        node: its definition.
        parameters: their names, without ``ctx``, ``self`` and ``cls``.
        ctx: the name of the context; empty where it has none.
        starred: whether it takes any number of further arguments.
    """

    node: libcst.FunctionDef
    parameters: list[str]
    ctx: str
    starred: bool

    @property
    def statements(self) -> Sequence[libcst.CSTNode]:
        """The statements of its body; empty where it is written in one line."""
        body = self.node.body
        return body.body if isinstance(body, libcst.IndentedBlock) else ()


@dataclass
class Scene:
    """A fault in its source.

    Raises:
        NoPlace: the class is made where no single place in the source stands for it.
    """

    tree: Tree
    fault: Fault
    owner: libcst.ClassDef = field(init=False)

    def __post_init__(self) -> None:
        owner = self._class()
        if owner is None:
            raise NoPlace("the fault lies in no class of this file, but in code that makes one")
        self.owner = owner
        for above in self.tree.around(owner):
            if isinstance(above, (libcst.For, libcst.While)):
                raise NoPlace(
                    f"`{owner.name.value}` is defined in a loop: a change would be made to every "
                    "class that it makes"
                )
            if isinstance(above, libcst.FunctionDef):
                raise NoPlace(
                    f"`{owner.name.value}` is defined in the function `{above.name.value}`: a "
                    "change would be made to every class that it makes"
                )

    def _class(self) -> libcst.ClassDef | None:
        found = None
        for node in self.tree.within(self.tree.module, libcst.ClassDef):
            first, last = self.tree.span(node)
            if first <= self.fault.start <= last:
                found = node  # the innermost comes last
        return found

    # -- the operator ---------------------------------------------------------------------------

    @cached_property
    def lineage(self) -> list[libcst.ClassDef]:
        """The class, and those of the file that it derives from, the nearest first."""
        known = {
            node.name.value: node for node in self.tree.within(self.tree.module, libcst.ClassDef)
        }
        found: list[libcst.ClassDef] = []
        left = [self.owner]
        while left:
            node = left.pop(0)
            if node in found:
                continue
            found.append(node)
            names = [self.tree.code(base.value) for base in node.bases]
            left += [known[name] for name in names if name in known]
        return found

    def heirs(self, edits: Sequence[Edit]) -> list[str]:
        """Classes of the file that derive from the class and inherit what ``edits`` change."""
        changed = {
            node.name.value
            for node in self.owner.body.body
            if isinstance(node, libcst.FunctionDef)
            and any(
                self.tree.span(node)[0] <= edit.start <= self.tree.span(node)[1] for edit in edits
            )
        }
        found = []
        for node in self.tree.within(self.tree.module, libcst.ClassDef):
            own = {one.name.value for one in node.body.body if isinstance(one, libcst.FunctionDef)}
            derives = any(self.tree.code(one.value) == self.owner.name.value for one in node.bases)
            if derives and not changed <= own:
                found.append(node.name.value)
        return found

    def method(self, name: str) -> Method | None:
        """The method called ``name``, also where it is inherited from a class of the file."""
        for owner in self.lineage:
            for node in owner.body.body:
                if isinstance(node, libcst.FunctionDef) and node.name.value == name:
                    return self._method(node)
        return None

    def own(self, method: Method | None) -> bool:
        """Whether the class itself holds ``method``, so that a change of it concerns no other."""
        return method is not None and any(node is method.node for node in self.owner.body.body)

    def _method(self, node: libcst.FunctionDef) -> Method:
        names = [parameter.name.value for parameter in node.params.params]
        if names and names[0] in ("self", "cls"):
            names = names[1:]
        ctx = ""
        if names and not (node.name.value == "forward" and self._apart):
            ctx, names = names[0], names[1:]
        names += [parameter.name.value for parameter in node.params.kwonly_params]
        return Method(node, names, ctx, isinstance(node.params.star_arg, libcst.Param))

    @cached_property
    def _apart(self) -> bool:
        """Whether forward has no context, and ``setup_context`` is written apart from it."""
        return any(
            isinstance(node, libcst.FunctionDef) and node.name.value == "setup_context"
            for owner in self.lineage
            for node in owner.body.body
        )

    @cached_property
    def forward(self) -> Method | None:
        """The method ``forward``."""
        return self.method("forward")

    @cached_property
    def backward(self) -> Method | None:
        """The method ``backward`` (or ``vjp``, as it may be called)."""
        return self.method("backward") or self.method("vjp")

    @cached_property
    def saving(self) -> Method | None:
        """The method that saves what backward needs."""
        return self.method("setup_context") or self.forward

    @cached_property
    def node(self) -> libcst.BaseExpression | None:
        """The expression at the place of the fault."""
        return self.tree.expression_at(self.fault.start, self.fault.end)

    @cached_property
    def statement(self) -> libcst.SimpleStatementLine | None:
        """The statement at the place of the fault."""
        return self.tree.statement_at(self.fault.start)

    @cached_property
    def around(self) -> Method | None:
        """The method of the class in which the fault lies."""
        for node in self.owner.body.body:
            if isinstance(node, libcst.FunctionDef):
                first, last = self.tree.span(node)
                if first <= self.fault.start <= last:
                    return self._method(node)
        return None

    # -- what backward returns ------------------------------------------------------------------

    @cached_property
    def returns(self) -> list[libcst.Return]:
        """The return statements of backward, but for those of functions inside of it."""
        return self.returns_of(self.backward)

    def returns_of(self, method: Method | None) -> list[libcst.Return]:
        """The return statements of ``method`` itself."""
        if method is None:
            return []
        return [
            node
            for node in self.tree.within(method.node, libcst.Return)
            if self.tree.nearest(node, libcst.FunctionDef) is method.node and node.value
        ]

    def elements(self, statement: libcst.Return) -> list[libcst.BaseExpression]:
        """What ``statement`` returns, one by one; empty where that can't be told."""
        value = statement.value
        if value is None:
            return []
        if isinstance(value, libcst.Tuple):
            if any(isinstance(one, libcst.StarredElement) for one in value.elements):
                return []
            return [one.value for one in value.elements]
        return [value]

    def returned_for(self, name: str) -> Iterator[libcst.BaseExpression]:
        """What each return statement of backward returns for the argument ``name``."""
        forward = self.forward
        if forward is None or name not in forward.parameters:
            return
        place = forward.parameters.index(name)
        for statement in self.returns:
            elements = self.elements(statement)
            if place < len(elements):
                yield elements[place]

    # -- what backward has in hand --------------------------------------------------------------

    @property
    def incoming(self) -> list[str]:
        """What backward calls the gradients that come in."""
        return self.backward.parameters if self.backward else []

    @cached_property
    def save(self) -> libcst.Call | None:
        """The one call of ``save_for_backward``."""
        calls = [
            call
            for call in self.tree.within(self.saving.node if self.saving else None, libcst.Call)
            if self.tree.code(call.func).endswith(".save_for_backward")
        ]
        return calls[0] if len(calls) == 1 else None

    @cached_property
    def saved(self) -> list[str]:
        """What ``save_for_backward`` is given; empty where that can't be told."""
        if self.save is None or any(arg.star or arg.keyword for arg in self.save.args):
            return []
        return [self.tree.code(arg.value) for arg in self.save.args]

    @cached_property
    def unpacking(self) -> libcst.Assign | None:
        """The statement of backward that gives names to all of ``saved_tensors``."""
        for node in self.tree.within(self.backward.node if self.backward else None, libcst.Assign):
            target = node.targets[0].target
            all_of_them = self.tree.code(node.value).endswith(".saved_tensors")
            if all_of_them and len(node.targets) == 1 and isinstance(target, _SEQUENCES):
                return node
        return None

    @cached_property
    def unpacked(self) -> list[str]:
        """The names that backward gives to what was saved, in its order."""
        if self.unpacking is None:
            return []
        target = self.unpacking.targets[0].target
        assert isinstance(target, _SEQUENCES)
        return [self.tree.code(one.value) for one in target.elements]

    @cached_property
    def attributes(self) -> dict[str, str]:
        """What is kept on the context: how forward writes it → how backward does."""
        found: dict[str, str] = {}
        if self.saving is None or self.backward is None or not self.saving.ctx:
            return found
        for node in self.tree.within(self.saving.node, libcst.Assign):
            target = node.targets[0].target
            if len(node.targets) != 1 or not isinstance(target, libcst.Attribute):
                continue
            if self.tree.code(target.value) == self.saving.ctx:
                name = f"{self.backward.ctx}.{target.attr.value}"
                found[self.tree.code(node.value)] = name
        return found

    @cached_property
    def in_hand(self) -> dict[str, str]:
        """What forward computes and backward has: how forward writes it → how backward does."""
        found = dict(self.attributes)
        if len(self.saved) == len(self.unpacked):
            found.update(zip(self.saved, self.unpacked, strict=True))
        return found

    @property
    def numbers(self) -> list[str]:
        """Attributes of the context that may be numbers: what is neither kept as a tensor nor says
        what a tensor is like."""
        tensors = {one.name for one in self.fault.known if one.shape is not None}
        return [
            held
            for text, held in self.attributes.items()
            if text not in tensors and not re.search(r"\.(shape|size\(\)|dtype|device)$", text)
        ]

    def reach(self, text: str) -> tuple[str, tuple[Edit, ...]] | None:
        """How backward can write what forward writes as ``text``, and what must be added for it;
        None if it can't be had by a small change."""
        if text in self.in_hand:
            return self.in_hand[text], ()
        forward, backward, saving = self.forward, self.backward, self.saving
        if forward is None or backward is None or saving is None or not text.isidentifier():
            return None
        if text not in forward.parameters or saving.node is not forward.node:
            return None
        if not (self.own(forward) and self.own(backward)):
            return None
        if any(one.name == text and one.shape is None for one in self.fault.known):
            return self._kept(text)
        return self._saved_too(text)

    def _kept(self, name: str) -> tuple[str, tuple[Edit, ...]] | None:
        assert self.forward is not None
        assert self.backward is not None
        first = self.first_statement(self.forward)
        if first is None:
            return None
        edit = self.tree.line_before(first, f"{self.forward.ctx}.{name} = {name}")
        return f"{self.backward.ctx}.{name}", (edit,)

    def _saved_too(self, name: str) -> tuple[str, tuple[Edit, ...]] | None:
        assert self.forward is not None
        assert self.backward is not None
        free = not re.search(rf"\b{name}\b", self.tree.code(self.backward.node))
        if not free:
            return None
        if self.save is None or self.unpacking is None:
            start = self.first_statement(self.forward)
            inside = self.first_statement(self.backward)
            if (
                start is None
                or inside is None
                or self.save
                or ".saved_tensors" in self.tree.code(self.backward.node)
            ):
                return None
            before = self.tree.line_before(start, f"{self.forward.ctx}.save_for_backward({name})")
            unpack = f"({name},) = {self.backward.ctx}.saved_tensors"
            return name, (before, self.tree.line_before(inside, unpack))
        if len(self.saved) != len(self.unpacked):
            return None
        end = self.tree.outer(self.save.args[-1].value)[1]
        names = ", ".join([*self.unpacked, name])
        target = self.unpacking.targets[0].target
        return name, (Edit(end, end, f", {name}"), self.tree.replaced(target, names))

    def first_statement(self, method: Method | None) -> libcst.CSTNode | None:
        """The first statement of ``method`` that is no docstring."""
        for node in method.statements if method is not None else ():
            if isinstance(node, libcst.SimpleStatementLine):
                first = node.body[0]
                if isinstance(first, libcst.Expr) and isinstance(
                    first.value, (libcst.SimpleString, libcst.ConcatenatedString)
                ):
                    continue
            return node
        return None

    def prose(self, node: libcst.CSTNode) -> str:
        """The docstrings and comments in ``node``."""
        found = [
            one.evaluated_value
            for line in self.tree.within(node, libcst.Expr)
            if isinstance(one := line.value, (libcst.SimpleString, libcst.ConcatenatedString))
        ]
        comments = self.tree.within(node, libcst.Comment)
        return "\n".join(
            [
                *(text for text in found if isinstance(text, str)),
                *(one.value.lstrip("# ") for one in comments),
            ]
        )

    def definition(self, node: libcst.BaseExpression) -> libcst.BaseExpression | None:
        """What the name ``node`` was assigned, where its method assigns it once but for ``None``,
        else None."""
        method = self.tree.nearest(node, libcst.FunctionDef)
        if not isinstance(node, libcst.Name) or method is None:
            return None
        found = [
            one.value
            for one in self.tree.within(method, libcst.Assign)
            for target in one.targets
            if isinstance(target.target, libcst.Name)
            and target.target.value == node.value
            and self.tree.code(one.value) != "None"
        ]
        again = any(
            isinstance(one.target, libcst.Name) and one.target.value == node.value
            for one in self.tree.within(method, libcst.AugAssign)
        )
        return found[0] if len(found) == 1 and not again else None

    def sources(self, name: str) -> list[libcst.BaseExpression]:
        """The expressions that make the gradient of ``name``: what is returned at the place of the
        fault, or for ``name``, and what the names in it were assigned."""
        node = self.node
        found = [node] if node is not None and self.fault.label.startswith("returned") else []
        if not found:
            found = list(self.returned_for(name))
        made = [self.definition(one) for one in found]
        return [one for one in (*made, *found) if one is not None]
