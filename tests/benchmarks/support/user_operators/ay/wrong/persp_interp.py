import torch
from torch.autograd import Function


class PerspectiveInterp(Function):
    # attr (V, C), tri (P, 3) long, bary (P, 3) screen space, w (P, 3) clip w of the corners -> (P, C)
    @staticmethod
    def forward(ctx, attr, tri, bary, w):
        ctx.save_for_backward(attr, tri, bary, w)
        pw = bary / w
        wt = pw / pw.sum(-1, keepdim=True)
        return torch.einsum("pk,pkc->pc", wt, attr[tri])

    @staticmethod
    def backward(ctx, g):
        attr, tri, bary, w = ctx.saved_tensors
        pw = bary / w
        s = pw.sum(-1, keepdim=True)
        wt = pw / s
        contrib = (wt[..., None] * g[:, None]).flatten(0, 1)
        g_attr = torch.zeros(attr.shape, device=attr.device)
        g_attr = g_attr.index_add(0, tri.flatten(), contrib)
        gwt = torch.einsum("pc,pkc->pk", g, attr[tri])
        gpw = (gwt - (gwt * wt).sum(-1, keepdim=True)) / s
        return g_attr, None, gpw / w, -gpw * bary / w ** 2
