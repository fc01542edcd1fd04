import torch


@torch.library.custom_op("aalib::three_interpolate", mutates_args=())
def three_interpolate(feats: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """PointNet++ feature propagation.

    feats (B, C, M), idx (B, N, 3) int64, weight (B, N, 3) -> (B, C, N)
    """
    return (_pick(feats, idx) * weight.unsqueeze(1)).sum(-1)


def _pick(feats, idx):
    B, N, k = idx.shape
    C = feats.shape[1]
    flat = idx.reshape(B, 1, N * k).expand(B, C, N * k)
    return feats.gather(2, flat).view(B, C, N, k)


@three_interpolate.register_fake
def _(feats, idx, weight):
    return feats.new_empty(feats.shape[0], feats.shape[1], idx.shape[1])


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _bwd(ctx, grad):
    feats, idx, weight = ctx.saved_tensors
    B, N, k = idx.shape
    C = feats.shape[1]
    flat = idx.reshape(B, 1, N * k).expand(B, C, N * k)
    spread = (grad.unsqueeze(-1) * weight.unsqueeze(1)).reshape(B, C, N * k)
    g_feats = torch.zeros_like(feats).scatter_add(2, flat, spread)
    g_weight = (grad.unsqueeze(-1) * _pick(feats, idx)).sum(1)
    return g_feats, None, g_weight


three_interpolate.register_autograd(_bwd, setup_context=_setup_context)


def interpolate_features(feats, idx, weight, normalize=True):
    if normalize:
        weight = weight / weight.sum(-1, keepdim=True)
    return three_interpolate(feats, idx, weight)
