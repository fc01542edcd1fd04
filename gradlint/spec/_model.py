"""The model of a spec: its keys, their types, and the text that editors show for each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

_INTEGER = {"type": "integer", "minimum": 0}
_EXPRESSION = {"type": "string", "minLength": 1}
_STRINGS = {"type": "array", "items": {"type": "string"}}


def _sizes(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _words(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _whole(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise PydanticCustomError("size", "a whole number or an expression of dims")
    return value


Sweep = Annotated[
    list[Annotated[int, Field(ge=0)]],
    BeforeValidator(_sizes),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_INTEGER, {"type": "array", "items": _INTEGER, "minItems": 1}]}),
]
Size = Annotated[
    Any, BeforeValidator(_whole), WithJsonSchema({"anyOf": [{"type": "integer"}, _EXPRESSION]})
]
Words = Annotated[
    list[str], BeforeValidator(_words), WithJsonSchema({"anyOf": [{"type": "string"}, _STRINGS]})
]
Text = Annotated[str, Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Ignore(_Model):
    """A finding that is accepted, and why."""

    code: str = Field(
        description="Code of the rule, such as GL503.",
        json_schema_extra={"pattern": "^GL[0-9]{3}$"},
    )
    reason: Text = Field(description="Why the finding is accepted. Mandatory.")


class Extension(_Model):
    """C++ or CUDA sources to build before the op is loaded."""

    sources: list[Text] = Field(
        min_length=1, description="C++ and CUDA files, relative to the spec."
    )
    name: Text | None = Field(
        None,
        description="Name of the extension, TORCH_EXTENSION_NAME in the sources; default the "
        "spec's. A function that pybind11 binds is then `op: name:function`.",
    )
    include_dirs: list[Text] = Field(
        default_factory=list, description="Folders of headers, relative to the spec."
    )
    extra_cflags: list[Text] = Field(
        default_factory=list,
        description="Further flags of the C++ compiler: words as in a shell, but nothing "
        "in them is expanded.",
    )
    extra_cuda_cflags: list[Text] = Field(
        default_factory=list, description="Further flags of nvcc."
    )
    extra_ldflags: list[Text] = Field(
        default_factory=list, description="Further flags of the linker."
    )
    with_cuda: bool = Field(
        False, description="Whether C++ sources need CUDA's headers; .cu sources always do."
    )


class Input(_Model):
    """One argument of the op: a tensor where `shape` is given, else a plain value."""

    shape: list[Size] | None = Field(
        None, description="Sizes of a tensor: dims, whole numbers, or arithmetic such as 2*N + 1."
    )
    optional: bool = Field(False, description="Samples are made with the argument and with None.")
    domain: Any = Field(
        None,
        description="Where the values lie: reals, positive, nonnegative, negative, nonpositive, "
        "nonzero, unit, open unit, probability (rows sum to 1), spd, unit vectors, increasing, "
        'or an interval such as "[-1, 1]".',
        json_schema_extra={
            "anyOf": [
                {"type": "string"},
                {
                    "type": "array",
                    "items": {"type": "number"},
                    "minItems": 2,
                    "maxItems": 2,
                },
            ]
        },
    )
    value: Any = Field(
        None,
        description="The value. For a tensor: a number for all elements, or nested lists.",
    )
    values: list[Any] | None = Field(
        None,
        min_length=1,
        description="Values to choose from: elements of a tensor are drawn from them, a plain "
        "argument is swept over them.",
    )
    expression: Text | None = Field(
        None,
        description="The value as an expression of dims, such as randn(N, N).tril() or "
        "torch.float32.",
    )
    range: list[Size] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="An integer tensor with elements from the first (included) to the second "
        "(left out), as in randint.",
    )
    dtype: str | None = Field(
        None,
        description="dtype of the tensor where it is not float64, such as int64 or bool. Floating "
        "tensors are converted to the dtypes under test.",
    )
    boolean: bool = Field(False, alias="bool", description="A tensor of true and false.")
    complex: bool = Field(False, description="A complex tensor.")
    sparse: Literal["coo", "csr"] | None = Field(None, description="A sparse tensor.")
    requires_grad: bool | None = Field(
        None, description="Whether gradients of it are checked; default yes where floating."
    )
    keyword: bool = Field(False, description="Passed by name.")
    items_list: list[Input] | None = Field(
        None, alias="list", description="A list of arguments, each described like one."
    )
    items_tuple: list[Input] | None = Field(
        None, alias="tuple", description="A tuple of arguments, each described like one."
    )
    items_dict: dict[str, Input] | None = Field(
        None, alias="dict", description="A dict of arguments, each described like one."
    )

    @model_validator(mode="before")
    @classmethod
    def _plain_value(cls, data: Any) -> Any:
        if isinstance(data, (dict, cls)):
            return data
        if isinstance(data, list):
            raise PydanticCustomError(
                "bare_list", "a bare list: write {shape: […]} for a tensor, {value: […]} for a list"
            )
        return {"value": data}

    @property
    def given(self) -> frozenset[str]:
        """Keys that the spec holds, as they are written there."""
        fields = type(self).model_fields
        return frozenset(fields[name].alias or name for name in self.model_fields_set)


class Case(_Model):
    """One sample: what differs from the spec's first dims and its inputs."""

    label: Text | None = Field(None, description="Name of the sample in reports.")
    dims: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict, description="Dims with another size."
    )
    inputs: dict[str, Input] = Field(
        default_factory=dict,
        description="Inputs that are described otherwise; null passes None.",
    )
    omit: Words = Field(
        default_factory=list, description="Inputs that are not passed, so that defaults hold."
    )


class OpSpec(_Model):
    """What gradlint is to check: an op, its inputs, and what it promises."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="gradlint op spec")

    name: Text | None = Field(None, description="Name in reports; default the op's or the file's.")
    description: str = Field("", description="What the op is, for readers.")
    op: Text | None = Field(
        None,
        description="The operator: pkg.mod:Name, path/file.py:Name (relative to the spec, or to "
        "where gradlint runs) or torch.ops.ns.name.",
    )
    forward: Text | None = Field(
        None,
        description="The op by formula, in the names of its inputs; a tuple for several outputs.",
    )
    backward: dict[str, Text] | None = Field(
        None,
        description="Input → formula of its gradient, in the inputs, grad_output (or "
        "grad_outputs[i]) and output (or outputs[i]). Without it autograd differentiates forward.",
    )
    let: dict[str, Text] = Field(
        default_factory=dict,
        description="Name → formula, for use in forward, backward, reference and later lets.",
    )
    constructor: dict[str, Input] | None = Field(
        None,
        description="Arguments by which the module that `op` names is made, by their names: plain "
        "values, lists of them, or an expression such as torch.float32. Without it they are "
        "guessed.",
    )
    extension: Extension | None = Field(None, description="Sources to build before `op` is loaded.")
    import_: Words = Field(
        default_factory=list, alias="import", description="Modules to import before `op` is loaded."
    )
    dims: dict[str, Sweep] = Field(
        default_factory=dict,
        description="Dim → size, or sizes that are swept: one at a time around the first ones, "
        "then all last ones together.",
    )
    inputs: dict[str, Input] = Field(
        default_factory=dict, description="Arguments of the op by their names in forward, in order."
    )
    cases: list[Case] | None = Field(
        None, min_length=1, description="The samples one by one, in place of sweeping."
    )
    reference: Text | None = Field(
        None, description="What forward should give, in torch expressions of the inputs."
    )
    surrogate: dict[str, Text] | None = Field(
        None,
        description="Input → gradient that backward returns on purpose where it is not the "
        "derivative (straight-through estimators).",
    )
    dtypes: list[Literal["float64", "float32", "bfloat16", "float16"]] | None = Field(
        None, min_length=1, description="dtypes to check; forward may refuse none of them."
    )
    devices: list[Literal["cpu", "cuda"]] | None = Field(
        None, min_length=1, description="Devices to check."
    )
    order: Literal[1, 2] | None = Field(None, description="1: first derivatives only.")
    seed: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Seed of the inputs; default the run's."
    )
    stochastic: bool | None = Field(None, description="Whether forward draws random numbers.")
    once_differentiable: bool = Field(
        False, description="Whether second derivatives are refused by contract."
    )
    ignore: list[Ignore] = Field(default_factory=list, description="Findings that are accepted.")

    _places: Any = PrivateAttr(default=None)

    def read_from(self, document: Any) -> OpSpec:
        """This spec, after noting the document that it was read from."""
        self._places = document
        return self

    @property
    def path(self) -> str:
        """The file it was read from."""
        return self._places.path if self._places is not None else ""

    @property
    def places(self) -> Any:
        """The document it was read from, with the place of every key and value."""
        return self._places
