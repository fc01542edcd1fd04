import torch
from torch import Tensor


@torch.library.custom_op("graphkit::segment_softmax", mutates_args=())
def segment_softmax(logits: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Softmax over the edges of every node. logits: (E, H), segment: (E,) in [0, num_segments)."""
    at = segment[:, None].expand_as(logits)
    top = logits.new_full((num_segments, logits.shape[1]), float("-inf")).scatter_reduce(0, at, logits, "amax")
    e = (logits - top[segment]).exp()
    total = torch.zeros_like(top).index_add(0, segment, e)
    return e / total[segment]


def _save(ctx, inputs, output):
    _, segment, ctx.num = inputs
    ctx.save_for_backward(output, segment)


def _bwd(ctx, g):
    p, segment = ctx.saved_tensors
    pg = g * p
    total = p.new_zeros(ctx.num, p.shape[1]).index_add(0, segment, pg)
    return pg - p * total[segment], None, None


segment_softmax.register_autograd(_bwd, setup_context=_save)
