import torch
import torch.nn.functional as F


def _unit(x):
    n = x.norm(dim=-1, keepdim=True).clamp(min=1e-9)
    return x / n, n


class GE2ESoftmax(torch.autograd.Function):
    """Generalized end-to-end loss, softmax variant (Wan et al. 2018).

    emb: (speakers, utterances, dim); w, b: scalars
    The centroid of an utterance's own speaker leaves out the utterance.
    """

    @staticmethod
    def forward(ctx, emb, w, b):
        cos = GE2ESoftmax.cosines(emb)[0]
        ctx.save_for_backward(emb, w, b)
        N, M = emb.shape[:2]
        target = torch.arange(N, device=emb.device).repeat_interleave(M)
        return F.cross_entropy((w * cos + b).reshape(N * M, N), target, reduction="sum")

    @staticmethod
    def cosines(emb):
        N, M, _ = emb.shape
        total = emb.sum(1)
        e, en = _unit(emb)
        c, cn = _unit(total / M)
        o, on = _unit((total[:, None] - emb) / (M - 1))
        eye = torch.eye(N, dtype=torch.bool, device=emb.device)[:, None]
        other = e @ c.t()
        own = (e * o).sum(-1, keepdim=True)
        return torch.where(eye, own, other), (e, en, c, cn, o, on, own, other, eye)

    @staticmethod
    def backward(ctx, g):
        emb, w, b = ctx.saved_tensors
        N, M, _ = emb.shape
        cos, (e, en, c, cn, o, on, own, other, eye) = GE2ESoftmax.cosines(emb)
        dS = g * (torch.softmax(w * cos + b, -1) - eye.to(emb.dtype))
        G = w * dS
        G_own = (G * eye).sum(-1, keepdim=True)
        G_oth = G.masked_fill(eye, 0)
        # utterance side
        de = (G_oth @ c - (G_oth * other).sum(-1, keepdim=True) * e) / en
        de = de + G_own * (o - own * e) / en
        # centroid side
        dc = (torch.einsum("jik,jid->kd", G_oth, e) - (G_oth * other).sum((0, 1))[:, None] * c) / cn
        do = G_own * (e - own * o) / on
        de = de + dc[:, None] / M + (do.sum(1, keepdim=True) - do) / (M - 1)
        return de, (dS * cos).sum(), dS.sum()
