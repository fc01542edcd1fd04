import torch


class _Pull(torch.autograd.Function):
    @staticmethod
    def forward(ctx, emb, label, n_inst, delta):
        ctx.save_for_backward(emb, label)
        ctx.n_inst, ctx.delta = n_inst, delta
        count, mu = _centres(emb, label, n_inst)
        h = ((emb - mu[label]).norm(dim=1) - delta).clamp(min=0)
        return (h * h / count[label]).sum() / (count > 0).sum()

    @staticmethod
    def backward(ctx, g):
        emb, label = ctx.saved_tensors
        count, mu = _centres(emb, label, ctx.n_inst)
        d = emb - mu[label]
        d2 = d.square().sum(1)
        far = d2 > ctx.delta ** 2
        r = torch.where(far, d2, torch.ones_like(d2)).sqrt()
        coef = torch.where(far, 2 * (r - ctx.delta) / r, torch.zeros_like(r))
        gd = (g * coef / (count[label] * (count > 0).sum()))[:, None] * d
        gmu = torch.zeros_like(mu).index_add(0, label, gd)
        return gd - gmu[label] / count[label, None], None, None, None


def _centres(emb, label, n):
    count = torch.bincount(label, minlength=n).to(emb.dtype)
    total = torch.zeros(n, emb.shape[1], dtype=emb.dtype, device=emb.device).index_add(0, label, emb)
    return count, total / count.clamp(min=1)[:, None]


def instance_pull(emb, label, n_inst, delta=0.5):
    return _Pull.apply(emb, label, n_inst, delta)
