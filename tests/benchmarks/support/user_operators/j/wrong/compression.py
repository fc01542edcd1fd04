"""Operators for learned compression: transforms, codebooks and packed or factored weights."""

import math

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _cosine_basis(n, dtype, device):
    k = torch.arange(n, dtype=dtype, device=device)
    basis = torch.cos(math.pi * (k + 0.5) * k[:, None] / n) * math.sqrt(2 / n)
    basis[0] = math.sqrt(1 / n)
    return basis


def _to_blocks(image, n):
    batch, height, width = image.shape
    return image.reshape(batch, height // n, n, width // n, n).transpose(2, 3)


def _from_blocks(blocks):
    batch, rows, cols, n, _ = blocks.shape
    return blocks.transpose(2, 3).reshape(batch, rows * n, cols * n)


class BlockDctScale(Function):
    """Blockwise cosine transform divided by a table of step sizes.

    image (B, H, W) with H and W multiples of n, table (n, n) without zeros. The coefficients stay
    at the place of their block, so the output has the shape of the image.
    """

    @staticmethod
    def forward(ctx, image, table):
        n = table.shape[0]
        if table.shape != (n, n) or image.dim() != 3:
            raise ValueError("image must be (batch, height, width) and the table square")
        if image.shape[1] % n or image.shape[2] % n:
            raise ValueError("the block size must divide the image size")
        basis = _cosine_basis(n, image.dtype, image.device)
        coef = basis @ _to_blocks(image, n) @ basis.T
        ctx.save_for_backward(image, table)
        return _from_blocks(coef / table)

    @staticmethod
    def backward(ctx, grad):
        image, table = ctx.saved_tensors
        n = table.shape[0]
        basis = _cosine_basis(n, torch.float32, image.device).to(image.dtype)
        inner = _to_blocks(grad, n) / table
        grad_image = grad_table = None
        if ctx.needs_input_grad[0]:
            grad_image = _from_blocks(basis.T @ inner @ basis)
        if ctx.needs_input_grad[1]:
            coef = basis @ _to_blocks(image, n) @ basis.T
            grad_table = -(inner * coef / table).sum((0, 1, 2))
        return grad_image, grad_table


class LowRankProject(Function):
    @staticmethod
    def forward(ctx, matrix, rank):
        if matrix.dim() != 2 or not 1 <= rank <= min(matrix.shape):
            raise ValueError("need a matrix and a rank between 1 and its smaller side")
        u, s, vh = torch.linalg.svd(matrix, full_matrices=True)
        ctx.save_for_backward(u, vh)
        ctx.rank = rank
        return (u[:, :rank] * s[:rank]) @ vh[:rank]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        u, vh = ctx.saved_tensors
        left, right = u[:, : ctx.rank], vh[: ctx.rank]
        on_left = left @ (left.T @ grad)
        rest = grad - on_left
        return on_left + (rest @ right.T) @ right, None


class LiftingWavelet(Function):
    """Periodic two-tap lifting wavelet, packed as [coarse | details coarse to fine]."""

    @staticmethod
    def forward(ctx, signal, predict, update, levels=1):
        if signal.dim() != 2 or signal.shape[1] % 2**levels:
            raise ValueError("the signal length must be a multiple of 2 ** levels")
        if predict.shape != (2,) or update.shape != (2,):
            raise ValueError("predict and update hold two taps each")
        coarse, details = signal, []
        for _ in range(levels):
            even, odd = coarse[:, 0::2], coarse[:, 1::2]
            detail = odd.sub_(predict[0] * even + predict[1] * even.roll(-1, 1))
            coarse = even + update[0] * detail + update[1] * detail.roll(1, 1)
            details.insert(0, detail)
        packed = torch.cat([coarse, *details], 1)
        ctx.save_for_backward(packed, predict, update)
        ctx.levels = levels
        return packed

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        packed, predict, update = ctx.saved_tensors
        size = packed.shape[1] >> ctx.levels
        grad_predict, grad_update = torch.zeros_like(predict), torch.zeros_like(update)
        coarse, g_coarse = packed[:, :size], grad[:, :size]
        for _ in range(ctx.levels):
            detail, g_detail = packed[:, size : 2 * size], grad[:, size : 2 * size]
            even = coarse - update[0] * detail - update[1] * detail.roll(1, 1)
            odd = detail + predict[0] * even + predict[1] * even.roll(-1, 1)
            grad_update[0] += (g_coarse * detail).sum()
            grad_update[1] += (g_coarse * detail.roll(1, 1)).sum()
            g_odd = g_detail + update[0] * g_coarse + update[1] * g_coarse.roll(-1, 1)
            grad_predict[0] -= (g_odd * even).sum()
            grad_predict[1] -= (g_odd * even.roll(-1, 1)).sum()
            g_even = g_coarse - predict[0] * g_odd - predict[1] * g_odd.roll(1, 1)
            coarse = torch.stack((even, odd), 2).flatten(1)
            g_coarse = torch.stack((g_even, g_odd), 2).flatten(1)
            size *= 2
        return g_coarse, grad_predict, grad_update, None


class SoftCodebook(Function):
    @staticmethod
    def _assign(z, codebook, temperature):
        offset = z.unsqueeze(-2) - codebook
        return offset, (-offset.square().sum(-1) / temperature).softmax(-1)

    @staticmethod
    def forward(ctx, z, codebook, temperature=1.0):
        if temperature <= 0:
            raise ValueError("temperature must be positive")
        _, share = SoftCodebook._assign(z, codebook, temperature)
        nearest = share.argmax(-1)
        ctx.save_for_backward(z, codebook)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(nearest)
        return share @ codebook, nearest

    @staticmethod
    def backward(ctx, grad, _grad_nearest):
        z, codebook = ctx.saved_tensors
        offset, share = SoftCodebook._assign(z, codebook, ctx.temperature)
        by_share = grad @ codebook.T
        logit = share * (by_share - (by_share * share).sum(-1, keepdim=True))
        pull = (-2 / ctx.temperature) * logit.unsqueeze(-1) * offset
        grad_z = grad_codebook = None
        if ctx.needs_input_grad[0]:
            grad_z = pull.sum(-2)
            width = codebook.shape[1]
            mixed = share.reshape(-1, share.shape[-1]).T @ grad.reshape(-1, width)
            grad_codebook = mixed - pull.reshape(-1, *codebook.shape).sum(0)
        return grad_z, grad_codebook, None


class DeltaRunDecode(Function):
    """Expand run-length coded increments and integrate them.

    Args:
        start: (D,) value before the first step.
        deltas: (R, D) increment of every run.
        counts: (R,) int64 run lengths, zero allowed.

    Returns:
        (counts.sum(), D) running values.
    """

    @staticmethod
    def forward(start, deltas, counts):
        if counts.shape != deltas.shape[:1] or bool((counts < 0).any()):
            raise ValueError("counts must hold one non-negative length per run")
        if start.shape != deltas.shape[1:]:
            raise ValueError("start must be (columns of deltas,)")
        return start + deltas.repeat_interleave(counts, 0).cumsum(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, _, counts = inputs
        ctx.save_for_backward(counts)
        ctx.save_for_forward(counts)

    @staticmethod
    def backward(ctx, grad):
        (counts,) = ctx.saved_tensors
        run = torch.repeat_interleave(counts)
        run = torch.unique_consecutive(run, return_inverse=True)[1]
        ahead = grad.flip(0).cumsum(0).flip(0)
        grad_deltas = grad.new_zeros(counts.shape[0], grad.shape[1]).index_add(0, run, ahead)
        return grad.sum(0), grad_deltas, None

    @staticmethod
    def jvp(ctx, dstart, ddeltas, _):
        (counts,) = ctx.saved_tensors
        steps = int(counts.sum())
        out = 0.0 if dstart is None else dstart.expand(steps, -1)
        if ddeltas is not None:
            out = out + ddeltas.repeat_interleave(counts, 0).cumsum(0)
        return out


class SoftHistogramEntropy(Function):
    """Entropy of samples (B, N) over soft bins around centers (K,), in units of ``base``."""

    @staticmethod
    def _bins(x, centers, bandwidth):
        offset = (x.unsqueeze(-1) - centers) / bandwidth
        share = (-0.5 * offset.square()).softmax(-1)
        return offset, share, share.mean(-2)

    @staticmethod
    def forward(ctx, x, centers, bandwidth=0.5, base=math.e):
        if bandwidth <= 0:
            raise ValueError("bandwidth must be positive")
        if base <= 0 or base == 1:
            raise ValueError("base must be positive and not one")
        _, _, prob = SoftHistogramEntropy._bins(x, centers, bandwidth)
        ctx.save_for_backward(x, centers)
        ctx.bandwidth, ctx.base = bandwidth, base
        return -torch.xlogy(prob, prob).sum(-1) / math.log(base)

    @staticmethod
    def backward(ctx, grad):
        x, centers = ctx.saved_tensors
        offset, share, prob = SoftHistogramEntropy._bins(x, centers, ctx.bandwidth)
        surprise = -prob.clamp_min(torch.finfo(prob.dtype).tiny).log() - 1
        by_prob = grad.unsqueeze(-1) * surprise
        by_share = by_prob.unsqueeze(-2) / x.shape[-1]
        logit = share * (by_share - (by_share * share).sum(-1, keepdim=True))
        pull = logit * offset / ctx.bandwidth
        return -pull.sum(-1), pull.flatten(0, -2).sum(0), None, None


class TrainEntry(Function):
    @staticmethod
    def _prefix(slices):
        out = [slices[0].new_ones(slices[0].shape[0], 1)]
        for piece in slices[:-1]:
            out.append((out[-1].unsqueeze(1) @ piece).squeeze(1))
        return out

    @staticmethod
    def _slices(index, cores):
        return [core[:, index[:, k]].transpose(0, 1) for k, core in enumerate(cores)]

    @staticmethod
    def forward(ctx, index, *cores):
        if index.dim() != 2 or index.shape[1] != len(cores):
            raise ValueError("index must have one column per core")
        if cores[0].shape[0] != 1 or cores[-1].shape[2] != 1:
            raise ValueError("the outer ranks must be one")
        slices = TrainEntry._slices(index, cores)
        value = TrainEntry._prefix(slices)[-1].unsqueeze(1) @ slices[-1]
        ctx.save_for_backward(index, *cores)
        return value.reshape(-1)

    @staticmethod
    def backward(ctx, grad):
        index, *cores = ctx.saved_tensors
        slices = TrainEntry._slices(index, cores)
        left = TrainEntry._prefix(slices)
        right = grad.unsqueeze(1)
        grads = [None] * len(cores)
        for k in range(len(cores) - 1, -1, -1):
            local = left[k].unsqueeze(2) * right.unsqueeze(1)
            grads[k] = torch.zeros_like(cores[k])
            grads[k][:, index[:, k]] = local.transpose(0, 1)
            right = (slices[k] @ right.unsqueeze(2)).squeeze(2)
        return None, *grads


class PackedSymSolve(Function):
    """Solve S x = rhs for a symmetric S stored as one packed triangle."""

    @staticmethod
    def _coords(n, upper, device):
        make = torch.triu_indices if upper else torch.tril_indices
        return make(n, n, device=device)

    @staticmethod
    def forward(ctx, packed, rhs, upper=True):
        n = rhs.shape[0]
        if packed.shape != (n * (n + 1) // 2,):
            raise ValueError("packed must hold n * (n + 1) / 2 entries")
        i, j = PackedSymSolve._coords(n, upper, packed.device)
        full = packed.new_zeros(n, n)
        full[i, j] = packed
        full[j, i] = packed
        x = torch.linalg.solve(full, rhs)
        ctx.save_for_backward(packed, x)
        ctx.upper = upper
        return x

    @staticmethod
    def backward(ctx, grad):
        packed, x = ctx.saved_tensors
        z = PackedSymSolve.apply(packed, grad, ctx.upper)
        if not ctx.needs_input_grad[0]:
            return None, z, None
        i, j = PackedSymSolve._coords(x.shape[0], ctx.upper, x.device)
        if x.dim() == 1:
            full = -torch.outer(z, x)
        else:
            full = -z @ x.T
        return full[i, j], z, None


class _BlockShrink(Function):
    @staticmethod
    def forward(ctx, x, tau):
        norm = x.square().sum(-1).sqrt()
        alive = norm > tau
        factor = torch.where(alive, 1 - tau / torch.where(alive, norm, 1.0), 0.0)
        out = x * factor.unsqueeze(-1)
        ctx.save_for_backward(out, tau)
        return out

    @staticmethod
    def backward(ctx, grad):
        out, tau = ctx.saved_tensors
        square = out.square().sum(-1)
        alive = square > tau.square()
        norm = torch.where(alive, square, torch.ones_like(square)).sqrt()
        along = torch.where(alive, (grad * out).sum(-1) / norm, 0.0)
        keep = torch.where(alive, 1 - tau / norm, 0.0)
        pull = tau * along / norm.square()
        grad_x = keep.unsqueeze(-1) * grad + pull.unsqueeze(-1) * out
        return grad_x, -along.sum_to_size(tau.shape)


class GroupShrinkage(nn.Module):
    def __init__(self, groups: int, init: float = 0.1):
        super().__init__()
        self.log_tau = nn.Parameter(torch.full((groups,), math.log(init)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        groups = self.log_tau.shape[0]
        if x.shape[-1] % groups:
            raise ValueError("the number of groups must divide the number of features")
        split = x.reshape(*x.shape[:-1], groups, -1)
        return _BlockShrink.apply(split, self.log_tau.exp()).reshape(x.shape)


def _compand(x, mu):
    return x.sign() * torch.log1p(mu * x.abs()) / torch.log1p(mu)


class MuLawCompand(nn.Module):
    """Logarithmic companding with one learned strength per channel, (B, C, T) to (B, C, T)."""

    def __init__(self, channels, mu=255.0, peak=1.0):
        super().__init__()
        self.log_mu = nn.Parameter(torch.full((channels, 1), math.log(mu)))
        self.peak = peak

    def forward(self, x):
        if x.dim() != 3:
            raise ValueError("x must be (batch, channels, time)")
        return self.peak * _compand(x / self.peak, self.log_mu.exp())
