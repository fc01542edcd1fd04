import torch


@torch.library.custom_op("ablib::qr_lookup", mutates_args=())
def qr_lookup(ids: torch.Tensor, quot: torch.Tensor, rem: torch.Tensor, mode: str) -> torch.Tensor:
    m = rem.shape[0]
    q, r = quot[ids // m], rem[ids % m]
    return q * r if mode == "mult" else q + r


@qr_lookup.register_fake
def _(ids, quot, rem, mode):
    return quot.new_empty((ids.shape[0], quot.shape[1]))


def setup_context(ctx, inputs, output):
    ids, quot, rem, mode = inputs
    ctx.save_for_backward(ids, quot, rem)
    ctx.mode = mode


def backward(ctx, grad):
    ids, quot, rem = ctx.saved_tensors
    m = rem.shape[0]
    qi, ri = ids // m, ids % m
    gq = gr = grad
    if ctx.mode == "mult":
        gq, gr = grad * rem[ri], grad * quot[qi]
    d_quot = torch.zeros_like(quot).index_put((qi,), gq, accumulate=True)
    d_rem = torch.zeros_like(rem).index_put((ri,), gr, accumulate=True)
    return None, d_quot, d_rem, None


torch.library.register_autograd("ablib::qr_lookup", backward, setup_context=setup_context)


def qr_embedding(ids, quot, rem, mode="mult"):
    """Compositional embedding: id -> quot[id // m] (x or +) rem[id % m]."""
    if mode not in {"mult", "add"}:
        raise ValueError(mode)
    return qr_lookup(ids, quot, rem, mode)
