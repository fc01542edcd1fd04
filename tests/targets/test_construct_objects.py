"""Constructors that take a configuration or another module."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from torch import nn

from gradlint.targets._construct import Attributes, attributes_read, construct
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


def test_what_is_read():
    assert attributes_read(Loose, ["cfg"]) == {
        "cfg": Attributes(("hidden_size", "intermediate_size", "scale"))
    }
    assert attributes_read(Keyed, ["options"]) == {"options": Attributes((), ("wide", "narrow"))}
    assert attributes_read(Chain, ["widths"]) == {}


def test_what_cannot_be_made_is_still_an_error():
    with pytest.raises(LoadError, match="`config`"):
        construct(Deep)
