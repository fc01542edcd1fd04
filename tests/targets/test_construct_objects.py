"""Constructors that take a configuration or another module."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from gradlint.targets._construct import (
    Attributes,
    attributes_read,
    construct,
    other_constructions,
)
from gradlint.targets.load_error import LoadError


@dataclass
class Config:
    dim: int
    heads: int
    dropout: float = 0.0


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        if config.dim % config.heads:
            raise ValueError("dim must be divisible by heads")
        self.proj = nn.Linear(config.dim, config.dim)


class Loose(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.up = nn.Linear(cfg.hidden_size, cfg.intermediate_size)

    def forward(self, x):
        return self.up(x) * self.cfg.scale


class Keyed(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.up = nn.Linear(options["wide"], options["narrow"])


class Chain(nn.Module):
    def __init__(self, widths: Sequence[int]):
        super().__init__()
        pairs = itertools.pairwise(widths)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)


class Adapter(nn.Module):
    def __init__(self, base: nn.Linear, rank: int):
        super().__init__()
        self.down = nn.Linear(base.in_features, rank)


class Deep(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.width = config.parts[0].width


def test_a_dataclass_is_filled_by_its_fields():
    module, values = construct(Attention)
    assert values["config"] == Config(dim=4, heads=2)
    assert module.proj.in_features == 4


def test_an_object_has_what_the_class_reads_from_it():
    module, values = construct(Loose)
    assert module.up.in_features != module.up.out_features
    assert values["cfg"].scale == 0.5
    module, _ = construct(Keyed)
    assert (module.up.in_features, module.up.out_features) == (4, 3)


def test_lists_of_widths_and_layers_of_torch():
    module, _ = construct(Chain)
    assert len(module.layers) == 1
    module, values = construct(Adapter)
    assert values["base"].in_features != values["base"].out_features
    assert module.down.in_features == values["base"].in_features


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, n_modes, encoder_dim):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.spectral = nn.Parameter(torch.ones(n_modes, encoder_dim))


class Resized(nn.Module):
    def __init__(self, model, padding_mode, mode):
        super().__init__()
        self.model, self.padding_mode, self.mode = model, padding_mode, mode


def test_widths_of_a_model_and_numbers_of_modes_are_sizes():
    _, values = construct(FeedForward)
    assert values == {"d_model": 4, "d_ff": 3, "n_modes": 6, "encoder_dim": 5}
    # Near misses: a module inside, and words.
    _, values = construct(Resized)
    assert isinstance(values["model"], nn.Module)
    assert values["padding_mode"] == values["mode"] == "nearest"


def test_what_is_read():
    assert attributes_read(Loose, ["cfg"]) == {
        "cfg": Attributes(("hidden_size", "intermediate_size", "scale"))
    }
    assert attributes_read(Keyed, ["options"]) == {"options": Attributes((), ("wide", "narrow"))}
    assert attributes_read(Chain, ["widths"]) == {}


def test_what_cannot_be_made_is_still_an_error():
    with pytest.raises(LoadError, match="`config`"):
        construct(Deep)


class Pinhole(nn.Module):
    def __init__(
        self, focal: tuple[float, float], center: tuple[float, ...], size: tuple[int, int]
    ):
        super().__init__()
        self.focal = nn.Parameter(torch.tensor(focal))
        self.center, self.size = center, size


class Lengths(nn.Module):
    def __init__(self, lengths, count):
        super().__init__()
        self.lengths = nn.Parameter(torch.tensor(lengths))
        self.out = nn.Linear(int(count), 2)


def test_tuples_of_floats_are_made_of_different_floats():
    made, values = construct(Pinhole)
    assert values["focal"] == (0.5, 0.75)
    assert values["center"] == (0.5, 0.75)
    assert all(type(size) is int for size in values["size"])
    assert made.focal.is_floating_point()


def test_numbers_of_a_parameter_are_floats_where_integers_are_refused():
    made, values = construct(Lengths)
    assert type(values["lengths"]) is float
    assert made.lengths.is_floating_point()


class Whitening(nn.Module):
    def __init__(self, matrix, offset):
        super().__init__()
        self.matrix = nn.Parameter(matrix.clone())
        self.register_buffer("offset", offset)

    def forward(self, x):
        return (x - self.offset) @ self.matrix


class Filters(nn.Module):
    def __init__(self, bank, width):
        super().__init__()
        out, inner, _ = bank.shape
        self.bank = bank
        self.linear = nn.Linear(width, out * inner)


class Widths(nn.Module):
    """Nothing here is a tensor."""

    def __init__(self, width, size):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, size))
        self.size = size


def test_what_becomes_a_parameter_or_has_a_shape_is_a_tensor():
    _, values = construct(Whitening)
    assert values["matrix"].dim() == 2
    assert values["offset"].dim() == 1
    _, values = construct(Filters)
    assert values["bank"].dim() == 3
    assert type(values["width"]) is int


def test_sizes_are_no_tensors():
    _, values = construct(Widths)
    assert {name: type(value) for name, value in values.items()} == {"width": int, "size": int}


class Block(nn.Module):
    def __init__(self, first_block, second_block):
        super().__init__()
        self.parts = nn.ModuleList([first_block, second_block])


class Stack(nn.Module):
    """Takes nothing but a list of blocks."""

    def __init__(self, parts):
        super().__init__()
        assert isinstance(parts, nn.ModuleList)
        for part in parts:
            assert isinstance(part, Block)
        self.parts = parts


class Refusing(nn.Module):
    def __init__(self, source):
        super().__init__()
        if not isinstance(source, (nn.Conv2d, nn.Conv1d)):
            raise TypeError("a convolution is needed")
        self.source = source


class Weighing(nn.Module):
    """Reads what only modules have."""

    def __init__(self, Fm):
        super().__init__()
        self.Fm = Fm

    def forward(self, x):
        return x * sum(weight.sum() for weight in self.Fm.parameters())


class Calling(nn.Module):
    def __init__(self, other):
        super().__init__()
        self.inner = other

    def forward(self, x):
        return self.inner(x)


class Scaling(nn.Module):
    """Near them: a number that is compared with a class somewhere, and never has to be one."""

    def __init__(self, amount):
        super().__init__()
        self.many = isinstance(amount, (list, tuple))
        self.amount = amount

    def forward(self, x):
        return x * self.amount


@pytest.mark.parametrize(
    ("cls", "name", "kind"),
    [
        (Stack, "parts", nn.ModuleList),
        (Refusing, "source", nn.Conv2d),
        (Weighing, "Fm", nn.Linear),
        (Calling, "other", nn.Linear),
        (Scaling, "amount", int),
    ],
)
def test_the_source_asks_for_modules(cls: type[nn.Module], name: str, kind: type) -> None:
    _, values = construct(cls)
    assert type(values[name]) is kind


def test_the_elements_are_of_the_class_asked_for() -> None:
    _, values = construct(Stack)
    assert [type(part) for part in values["parts"]] == [Block, Block]
    assert values["parts"][0] is not values["parts"][1]


class Chained(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList([Block(first_block=f, second_block=g) for f, g in blocks])


class PairsOfSizes(nn.Module):
    """Near it: pairs that become the sizes of a layer, one after the other."""

    def __init__(self, blocks):
        super().__init__()
        self.total = sum(height * width for height, width in blocks)


def test_pairs_of_modules() -> None:
    module, values = construct(Chained)
    assert [[type(part) for part in pair] for pair in values["blocks"]] == [[nn.Linear] * 2] * 2
    assert len(module.blocks) == 2
    with pytest.raises(LoadError):
        construct(PairsOfSizes)


class Unfilled(nn.Module):
    """Parameters that the model around it fills, and a layer that fills its own."""

    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.empty(40))
        self.like = nn.Parameter(torch.empty_like(self.decay))
        self.new = nn.Parameter(self.decay.new_empty(2, 20))
        self.register_buffer("count", torch.empty(3, dtype=torch.int64))
        self.register_buffer("absent", torch.empty(3, device="meta"))
        self.linear = nn.Linear(4, 3)


def test_parameters_without_values_get_some_always_the_same() -> None:
    first, _ = construct(Unfilled)
    litter = torch.full((40,), torch.nan)  # what memory without values may hold next
    del litter
    second, _ = construct(Unfilled)
    for name in ("decay", "like", "new"):
        value = getattr(first, name).detach()
        assert torch.equal(value, getattr(second, name).detach())
        assert 0.1 < float(value.std()) < 0.6
    assert not torch.equal(first.decay, first.like)
    assert first.absent.device.type == "meta"


def test_parameters_that_are_filled_are_what_they_are_without() -> None:
    class Filled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 3)
            self.own = nn.Parameter(torch.empty(5).uniform_(2.0, 3.0))

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.extra = nn.Parameter(torch.empty(7))
            self.linear = nn.Linear(4, 3)

    filled, plain = construct(Filled)[0], construct(Plain)[0]
    assert torch.equal(filled.linear.weight, plain.linear.weight)
    assert bool((filled.own >= 2.0).all())


POOLED = '''
import torch

class Pooled(torch.nn.Module):
    """Pools to a size, or by a ratio.

    Examples:
        >>> layer = Pooled(2, ratio=(0.5, 0.5))
        >>> layer(torch.randn(2, 3, 8, 8))
    """

    def __init__(self, kernel, size=None, ratio=None):
        super().__init__()
        if size is None and ratio is None:
            raise ValueError("one of size and ratio must be given")
        if not isinstance(ratio, tuple):
            raise ValueError("ratio")
        self.kernel = kernel

    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, self.kernel)
'''


def made(tmp_path, text: str):
    path = tmp_path / "pooled_under_test.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("pooled_under_test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["pooled_under_test"] = module
    try:
        spec.loader.exec_module(module)
        return construct(module.Pooled)
    finally:
        del sys.modules["pooled_under_test"]


def test_optional_arguments_that_an_example_gives_are_given_where_nothing_else_works(tmp_path):
    assert made(tmp_path, POOLED)[1] == {"kernel": 2, "ratio": (0.5, 0.5)}


def test_an_example_that_is_no_literal_constructs_nothing(tmp_path):
    computed = POOLED.replace("ratio=(0.5, 0.5)", "ratio=tuple(open('x'))")
    with pytest.raises(LoadError, match="needs `kernel` to be constructed"):
        made(tmp_path, computed)


class Pairs(nn.Module):
    def __init__(self, blocks: list[tuple[nn.Module, nn.Module]]):
        super().__init__()
        if not all(isinstance(part, nn.Module) for pair in blocks for part in pair):
            raise TypeError("pairs of modules are wanted")
        self.blocks = nn.ModuleList([part for pair in blocks for part in pair])


class Layers(nn.Module):
    def __init__(self, first: Sequence[nn.Module], last: tuple[nn.Linear, ...]):
        super().__init__()
        self.first, self.last = nn.ModuleList(first), nn.ModuleList(last)


class Sized(nn.Module):
    def __init__(self, sizes: list[int], ratios: tuple[float, float]):
        super().__init__()
        self.sizes, self.ratios = sizes, ratios


def test_collections_of_modules_are_made_as_they_are_annotated():
    assert len(construct(Pairs)[0].blocks) == 4
    layers = construct(Layers)[0]
    assert len(layers.first) == len(layers.last) == 2
    assert all(isinstance(part, nn.Linear) for part in layers.last)


def test_collections_of_numbers_stay_numbers():
    sized = construct(Sized)[0]
    assert all(type(size) is int for size in sized.sizes)
    assert all(type(ratio) is float for ratio in sized.ratios)


class Bottleneck(nn.Module):
    """A quarter of the channels in the middle: of three, none."""

    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.first = nn.Conv2d(inner, outer // 4, 1)
        self.second = nn.Conv2d(outer // 4, outer, 1)


class Reserved(nn.Module):
    """An empty parameter that is meant: no other arguments make it larger."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.reserved = nn.Parameter(torch.empty(0))


class Lazy(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.inner = nn.LazyLinear(width)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_other_sizes_where_a_parameter_would_be_empty():
    module, values = construct(Bottleneck)
    assert values == {"inner": 4, "outer": 4}
    assert module.first.weight.shape == (1, 4, 1, 1)


@pytest.mark.parametrize("cls", [Reserved, Lazy])
def test_the_first_sizes_where_no_others_help(cls):
    assert construct(cls)[1] == {"width": 4}


def test_the_next_guesses_are_others():
    _, chosen = construct(Chain)
    others = [values for _, values in other_constructions(Chain, chosen)]
    assert [chosen, *others][:2] == [{"widths": [4, 5]}, {"widths": [8, 9]}]
    assert all(values != chosen for values in others)


class Stages(nn.Module):
    """Units of stages, and a rate for each of the units."""

    def __init__(self, channels: list[list[int]], rates: list[float]):
        super().__init__()
        widths = [width for stage in channels for width in stage]
        self.units = nn.ModuleList(nn.Linear(width, width) for width in widths)
        self.rates = [rates[k] for k in range(len(widths))]


def test_lists_of_lists_hold_as_many_as_a_flat_list():
    module, values = construct(Stages)
    assert values == {"channels": [[4], [5]], "rates": [0.5, 0.75]}
    assert [unit.in_features for unit in module.units] == [4, 5]


class Listed(nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = nn.ModuleList(functions)


class InARow(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.row = nn.Sequential(*stages)


class MadeOfWidths(nn.Module):
    """Near them: a container of layers that are made here."""

    def __init__(self, widths):
        super().__init__()
        self.row = nn.Sequential(*[nn.Linear(a, b) for a, b in itertools.pairwise(widths)])


@pytest.mark.parametrize(
    ("cls", "name", "kind"),
    [
        (Listed, "functions", nn.Linear),
        (InARow, "stages", nn.Linear),
        (MadeOfWidths, "widths", int),
    ],
)
def test_what_fills_a_container_is_modules(cls: type[nn.Module], name: str, kind: type) -> None:
    _, values = construct(cls)
    assert [type(item) for item in values[name]] == [kind, kind]


def _layers(first, others):
    widths = [first, *others, 1]
    return [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]


class MadeElsewhere(nn.Module):
    def __init__(self, first, others):
        super().__init__()
        self.row = nn.Sequential(*_layers(first, others))


def _row(parts):
    return nn.Sequential(*parts)


class FilledElsewhere(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.row = _row(parts)


class WithALayer(nn.Module):
    def __init__(self, size, inside):
        super().__init__()
        self.held = {}
        self.add_module("inside", inside)
        self.weight = nn.Parameter(torch.zeros(size))


class NeverMade(nn.Module):
    """Near them: the constructor raises whatever it gets."""

    def __init__(self, anything):
        super().__init__()
        raise TypeError("'int' object is not iterable")


def test_what_a_constructor_raises_tells_what_a_guess_lacks() -> None:
    _, values = construct(MadeElsewhere)
    assert type(values["first"]) is int
    assert [type(item) for item in values["others"]] == [int, int]
    _, values = construct(FilledElsewhere)
    assert [type(item) for item in values["parts"]] == [nn.Linear, nn.Linear]
    _, values = construct(WithALayer)
    assert (type(values["size"]), type(values["inside"])) == (int, nn.Linear)
    with pytest.raises(LoadError, match="none of"):
        construct(NeverMade)


class Excites(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.down = nn.Parameter(torch.randn(reduced, channels))
        self.up = nn.Parameter(torch.randn(channels, reduced))


class NamedOtherwise(nn.Module):
    """Its names are those of a number and of a name, by their usual meaning."""

    def __init__(self, power, reduction):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(reduction, power))


class Loss(nn.Module):
    def __init__(self, classes, reduction):
        super().__init__()
        assert reduction in ("mean", "sum")
        self.weight = nn.Parameter(torch.ones(classes))


@pytest.mark.parametrize(
    ("cls", "values"),
    [
        (Excites, {"channels": 4, "reduced": 3}),
        (NamedOtherwise, {"power": 2, "reduction": 3}),
        (Loss, {"classes": 5, "reduction": "mean"}),
    ],
)
def test_names_and_numbers_become_sizes_where_pytorch_asks_for_them(
    cls: type[nn.Module], values: dict[str, Any]
) -> None:
    assert construct(cls)[1] == values


class Lenses(nn.Module):
    def __init__(self, focal, gap):
        super().__init__()
        self.focal = nn.Parameter(torch.tensor(focal))
        self.gap = nn.Parameter(torch.tensor(gap))


def test_numbers_of_a_parameter_may_be_several() -> None:
    module, values = construct(Lenses)
    assert (module.focal.dim(), module.gap.dim()) == (0, 0)
    made = [other for _, other in other_constructions(Lenses, values)]
    lists = next(other for other in made if isinstance(other["focal"], list))
    assert [len(lists[name]) for name in ("focal", "gap")] == [3, 3]
    assert all(type(item) is float for name in lists for item in lists[name])
