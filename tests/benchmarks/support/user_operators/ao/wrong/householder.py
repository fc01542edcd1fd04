import torch


def reflect(v, x):
    return x - 2 * v * ((x @ v) / (v @ v)).unsqueeze(1)


class HouseholderChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, vs):
        ctx.save_for_backward(x, vs)
        for v in vs:
            x = reflect(v, x)
        return x

    @staticmethod
    def backward(ctx, g):
        x, vs = ctx.saved_tensors
        xs = [x]
        for v in vs[:-1]:
            xs.append(reflect(v, xs[-1]))
        gvs = []
        for k in range(vs.shape[0] - 1, -1, -1):
            v, xin = vs[k], xs[k]
            s = v @ v
            xv, gv = xin @ v, g @ v
            d = -2 / s * (xv @ g + gv @ xin) + 4 / s ** 2 * (xv @ gv) * v
            gvs.append(d)
            g = reflect(v, g)
        return g, torch.stack(gvs)
