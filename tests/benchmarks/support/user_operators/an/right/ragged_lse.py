import torch


@torch.library.custom_op("ragged::logsumexp", mutates_args=())
def ragged_logsumexp(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """values (N, D), offsets (S + 1,) increasing from 0 to N -> (S, D)"""
    parts = [values[a:b].logsumexp(0) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist())]
    return torch.stack(parts)


@ragged_logsumexp.register_fake
def _(values, offsets):
    return values.new_empty(offsets.shape[0] - 1, values.shape[1])


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs, output)


def _backward(ctx, g):
    values, offsets, out = ctx.saved_tensors
    row = torch.arange(values.shape[0], device=values.device)
    seg = torch.bucketize(row, offsets[1:], right=True)
    return g[seg] * torch.exp(values - out[seg]), None


ragged_logsumexp.register_autograd(_backward, setup_context=_setup)
