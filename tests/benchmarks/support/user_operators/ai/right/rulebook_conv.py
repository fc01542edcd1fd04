from typing import List, Tuple

import torch
from torch import Tensor


class RulebookConv(torch.autograd.Function):
    """Sparse convolution by gather, product and scatter.

    feats (N_in, C_in), weight (K, C_in, C_out), bias (C_out,) or None,
    rules: K pairs (in rows, out rows), n_out: rows of the output.
    """

    @staticmethod
    def forward(ctx, feats: Tensor, weight: Tensor, bias, rules: List[Tuple[Tensor, Tensor]], n_out: int):
        if len(rules) != weight.size(0):
            raise ValueError("one rule per kernel offset")
        out = feats.new_zeros(n_out, weight.size(2))
        for k, (src, dst) in enumerate(rules):
            if src.numel():
                out.index_add_(0, dst, feats[src] @ weight[k])
        if bias is not None:
            out += bias
        ctx.save_for_backward(feats, weight)
        ctx.rules = rules
        ctx.has_bias = bias is not None
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        feats, weight = ctx.saved_tensors
        d_feats = torch.zeros_like(feats)
        d_weight = []
        for k, (src, dst) in enumerate(ctx.rules):
            g = grad[dst]
            d_feats = d_feats.index_add(0, src, g @ weight[k].t())
            d_weight.append(feats[src].t() @ g)
        d_bias = grad.sum(0) if ctx.has_bias else None
        return d_feats, torch.stack(d_weight), d_bias, None, None
