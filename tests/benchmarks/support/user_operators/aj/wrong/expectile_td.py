import torch


class _ExpectileTD(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, v_next, reward, done, gamma, tau):
        u = reward + gamma * (1 - done) * v_next - v
        ctx.save_for_backward(u, done)
        ctx.gamma, ctx.tau = gamma, tau
        return (tau - (u < 0).to(u)).abs() * u * u

    @staticmethod
    def backward(ctx, g):
        u, done = ctx.saved_tensors
        cont = ctx.gamma * (1 - done)
        gu = 2 * (ctx.tau - (u < 0).to(u)).abs() * u * g
        return -gu, cont * gu, gu, None, None, None


def expectile_td(v, v_next, reward, done, gamma=0.99, tau=0.7):
    """asymmetric squared TD error; all (B,), done is 0/1"""
    return _ExpectileTD.apply(v, v_next, reward, done, gamma, tau)
