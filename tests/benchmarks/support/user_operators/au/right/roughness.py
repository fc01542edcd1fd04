import torch
from torch import Tensor


def _pairs(freq):
    i, j = torch.triu_indices(freq.size(1), freq.size(1), 1, device=freq.device)
    fi, fj = freq[:, i], freq[:, j]
    s = 0.24 / (0.021 * torch.minimum(fi, fj) + 19)
    return i, j, fj - fi, s


@torch.library.custom_op("psychoac::roughness", mutates_args=())
def _roughness(freq: Tensor, amp: Tensor) -> Tensor:
    i, j, d, s = _pairs(freq)
    x = s * d.abs()
    return (amp[:, i] * amp[:, j] * (torch.exp(-3.5 * x) - torch.exp(-5.75 * x))).sum(1)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    freq, amp = ctx.saved_tensors
    i, j, d, s = _pairs(freq)
    x = s * d.abs()
    slow, fast = torch.exp(-3.5 * x), torch.exp(-5.75 * x)
    ai, aj = amp[:, i], amp[:, j]
    g = g[:, None]
    body = g * (slow - fast)
    g_amp = torch.zeros_like(amp).index_add(1, i, body * aj).index_add(1, j, body * ai)
    gx = g * ai * aj * (5.75 * fast - 3.5 * slow)
    step = gx * s * d.sign()
    widen = gx * d.abs() * (-0.021 / 0.24) * s * s
    low_i = (d > 0).to(d.dtype)
    g_freq = torch.zeros_like(freq).index_add(1, j, step + widen * (1 - low_i)).index_add(1, i, widen * low_i - step)
    return g_freq, g_amp


_roughness.register_autograd(_backward, setup_context=_setup)


def roughness(freq, amp):
    """Sensory dissonance of a chord's partials (Sethares' fit of Plomp and Levelt).

    freq (B, P) [Hz], distinct within a row, in any order; amp (B, P) -> (B,)
    """
    return torch.ops.psychoac.roughness(freq, amp)
