"""Calls of all reference operators at sizes that take every way through the kernels for CUDA."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

#: One of each width: what threads do, and where, does not depend on more of a dtype.
WIDTHS = DTYPES[:3]

#: Where the elements of a tensor are in memory: one after the other; from the second element of a
#: buffer on, so that nothing is aligned to 16 bytes; every second one; the first axis innermost.
LAYOUTS = ("dense", "shifted", "every second", "transposed")

#: Elements between rows that are so far apart that offsets take more than 31 bits: of a file that
#: has no more blocks than are written.
FAR = 2**31

#: By the call.
Results = dict[str, list[Tensor]]


@dataclass(frozen=True)
class Case:
    """One call of an operator.

    Args:
        op: name in ``torch.ops.gradlint``.
        shapes: of the inputs that are drawn and have gradients.
        rest: what follows them.
        layout: of the inputs and of the gradients that come in.
        dtypes: of the inputs.
    """

    op: str
    shapes: tuple[tuple[int, ...], ...]
    rest: tuple[object, ...] = ()
    layout: str = "dense"
    dtypes: tuple[torch.dtype, ...] = DTYPES

    def __str__(self) -> str:
        rest = [tuple(x.shape) if isinstance(x, Tensor) else x for x in self.rest]
        return f"{self.op} {self.shapes} {rest} {self.layout}"

    def results(self, dtype: torch.dtype) -> list[Tensor]:
        """Outputs, gradients, and gradients of gradients where there are any."""
        generator = torch.Generator().manual_seed(sum(map(sum, self.shapes)) + 1)
        leaves = [self._drawn(shape, dtype, generator) for shape in self.shapes]
        rest = [
            x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x for x in self.rest
        ]
        leaves = [leaf.requires_grad_() for leaf in leaves]
        output = getattr(torch.ops.gradlint, self.op)(*leaves, *rest)
        cotangent = self._drawn(tuple(output.shape), dtype, generator).requires_grad_()
        first = torch.autograd.grad(output, leaves, cotangent, create_graph=True)
        found = [output, *first]
        try:
            cotangents = [self._drawn(tuple(g.shape), dtype, generator) for g in first]
            second = torch.autograd.grad(first, [*leaves, cotangent], cotangents, allow_unused=True)
        except RuntimeError as error:
            if "backward is not implemented" not in str(error):
                raise
            second = ()  # differentiable once
        return [value.detach() for value in (*found, *second) if value is not None]

    def _drawn(
        self, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
    ) -> Tensor:
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        if self.layout == "shifted":
            # What is read beside the elements shows.
            place = torch.full((values.numel() + 2,), torch.nan, dtype=dtype)[1:-1].view(shape)
        elif self.layout == "every second" and shape:
            place = torch.full((*shape[:-1], 2 * shape[-1]), torch.nan, dtype=dtype)[..., ::2]
        elif self.layout == "transposed" and len(shape) > 1:
            place = torch.empty(shape[1], shape[0], *shape[2:], dtype=dtype).transpose(0, 1)
        elif self.layout == "parts of rows" and shape:
            place = torch.full((*shape[:-1], shape[-1] + 8), torch.nan, dtype=dtype)
            place = place[..., : shape[-1]]
        elif self.layout == "far" and len(shape) == 2:
            with tempfile.NamedTemporaryFile() as file:
                whole = torch.from_file(file.name, shared=True, size=2 * FAR, dtype=dtype)
            place = whole.as_strided(shape, (FAR, 2))
        else:
            place = torch.empty(shape, dtype=dtype)
        return place.copy_(values)


@dataclass(frozen=True)
class InPlace(Case):
    """A call that changes its input; the result is the buffer around that, where all else stays."""

    def results(self, dtype: torch.dtype) -> list[Tensor]:
        (shape,) = self.shapes
        buffer = torch.full((2 * prod(shape) + 1000,), 7.0, dtype=dtype)
        step = 2 if self.layout == "every second" else 1
        start = 1 if self.layout == "shifted" else 0
        view = buffer[start:][: step * prod(shape) : step].view(shape)
        getattr(torch.ops.gradlint, self.op)(view, *self.rest)
        return [buffer]


def pointwise() -> Iterator[Case]:
    """Less than a pack, blocks that are not full, axes that can't be joined, nothing."""
    ops = {
        **dict.fromkeys(("square", "exp", "gelu", "silu", "relu", "sign_ste"), ()),
        "scaled_sigmoid": (2.0,),
        "clipped_relu": (0.5,),
        "soft_threshold": (0.5,),
        "scale": (3.0,),
    }
    for op, numbers in ops.items():
        for shape in [(), (0,), (5,), (4099,)]:
            yield Case(op, (shape,), numbers)
        for layout in LAYOUTS[1:]:
            yield Case(op, ((7, 5, 33),), numbers, layout)
        yield Case(op, ((9, 3, 40),), numbers, "parts of rows")
        yield Case(op, ((2, 40),), numbers, "far")
    for op in ("add_relu", "weighted_sum"):
        for width in (23, 24):
            yield Case(op, ((70, width),) * 2, layout="parts of rows")
        yield Case(op, ((2, 40),) * 2, layout="far")
    for layout in LAYOUTS:
        yield Case("add_relu", ((3, 1, 701),) * 2, layout=layout)
        yield Case("weighted_sum", ((3, 5, 701),) * 2, layout=layout)
        yield InPlace("scale_", ((4099,),), (3.0,), layout)
    yield Case("add_relu", ((4099,), (4099,)))
    for count in (0, 1, 20001):
        yield Case("weighted_sum", ((count,), (count,)))


#: Rows and lengths: a lane to a row; part of a warp, with teams that have no row; a warp; several;
#: all that a block holds in each width of the elements; more than that.
ROWS = (
    *((0, 5), (3, 0), (1, 1), (300, 3), (131, 8), (70, 24), (9, 130), (9, 200), (600, 16)),
    *((5, 513), (3, 1000), (3, 2048), (2, 4096), (2, 4112), (2, 4099)),
)


def rows() -> Iterator[Case]:
    """Rows that are held and others, packs and elements."""
    for shape in ROWS:
        yield Case("gumbel_softmax", (shape, shape), (0.75, False))
        yield Case("gumbel_softmax", (shape, shape), (0.75, True))
    for layout, shape in itertools.product(LAYOUTS[1:], [(70, 24), (3, 520)]):
        yield Case("gumbel_softmax", (shape, shape), (0.75, False), layout)
        yield Case("gumbel_softmax", (shape, shape), (0.75, True), layout)
    for shape in [(3, 1), (3, 5), (3, 130), (0, 4)]:
        yield Case("soft_rank", (shape,), (0.5,))


def norms() -> Iterator[Case]:
    """The same, with sums down the columns on the way, or apart where rows are not held."""
    for count, length in ROWS:
        if length == 0:
            continue
        yield Case("layer_norm", ((count, length),))
        if length < 600:
            yield Case("layer_norm", ((count, length), (length,), (length,)))
    for layout, (count, length) in itertools.product(LAYOUTS[1:], [(70, 24), (3, 520)]):
        yield Case("layer_norm", ((count, length), (length,), (length,)), (), layout)
    # Many rows for each column: several stretches.
    for columns in (1, 3, 40):
        yield Case("layer_norm", ((2100, columns), (columns,), (columns,)))


def channels() -> Iterator[Case]:
    """Channels as columns and as rows of one or several parts."""
    shapes = [
        *((7, 3), (2, 1), (33, 70), (600, 5), (2000, 1)),
        *((5, 3, 7), (140, 2, 9), (3, 2, 32), (3, 5, 33), (2, 3, 1000), (2, 2, 4099), (1, 1, 8200)),
        (0, 3, 4),
    ]
    for shape in shapes:
        yield Case("batch_norm", (shape,))
    for layout, shape in itertools.product(LAYOUTS[1:], [(140, 3, 9), (3, 4, 136)]):
        yield Case("batch_norm", (shape,), (), layout)


def products() -> Iterator[Case]:
    """One tile, exact tiles, tiles that are not full, batches, long sums in parts, nothing."""
    sizes = [(4, 8, 5), (64, 32, 64), (65, 130, 67), (3, 2100, 2), (0, 3, 4), (3, 0, 4), (3, 4, 0)]
    for rows, inner, columns in sizes:
        yield Case("linear", ((rows, inner), (columns, inner), (columns,)))
    for layout in LAYOUTS:
        yield Case("linear", ((70, 18), (66, 18)), (), layout)
        yield Case("matmul", ((3, 17, 20), (3, 20, 9)), (), layout)
        yield Case("column_sum", ((530, 37),), (), layout)
    for shape in [(1, 1), (7, 3), (2100, 33), (0, 3), (3, 0)]:
        yield Case("column_sum", (shape,))
    for queries, keys in [(3, 1), (5, 33), (9, 200)]:
        inputs = ((2, queries, 6), (2, keys, 6), (2, keys, 4))
        yield Case("attention", inputs)
        # A query may look at every third key, the last at none.
        mask = torch.arange(queries)[:, None] + torch.arange(keys) % 3 == queries // 2
        mask[-1] = False
        yield Case("attention", inputs, (mask,))
    # The most threads, with more than one round of them.
    yield Case("masked_softmax", ((1, 2, 4200),), (None, 0.5), dtypes=DTYPES[:2])


def boxes() -> Iterator[Case]:
    """Fewer pixels than a tile has and more, channels that are no whole group, many boxes."""
    generator = torch.Generator().manual_seed(1)
    for images, planes, height, width, count in [
        (2, 3, 9, 12, 4),
        (1, 9, 20, 40, 70),
        (1, 1, 1, 1, 0),
    ]:
        where = torch.rand(count, 2, generator=generator) * torch.tensor([width, height])
        size = torch.rand(count, 2, generator=generator) * 8 + 0.5
        image = torch.randint(images, (count, 1), generator=generator)
        # Eighths: the same boxes in all dtypes.
        drawn = (torch.cat([image, where, where + size], 1) * 8).round() / 8
        for sampling, aligned in [(0, False), (2, True)]:
            rest = (drawn, 0.5, 3, 2, sampling, aligned)
            yield Case("roi_align", ((images, planes, height, width),), rest)


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    family.__name__: family for family in (boxes, channels, norms, pointwise, products, rows)
}


def results(family: str, dtypes: Collection[torch.dtype] = DTYPES) -> Results:
    """Of all calls of a family in those of ``dtypes`` that each has."""
    return {
        f"{case} {dtype}": case.results(dtype)
        for case in FAMILIES[family]()
        for dtype in case.dtypes
        if dtype in dtypes
    }
