import torch
from torch.autograd import Function


class ChildSumCell(Function):
    """Child-sum tree LSTM, all nodes of one level at once.

    i, o, u (N, H) pre-activations; f, c_child (E, H) one row per child; parent (E,) long.
    Returns h, c (N, H).
    """

    @staticmethod
    def forward(ctx, i, o, u, f, c_child, parent):
        c = i.sigmoid() * u.tanh()
        c = c.index_add(0, parent, f.sigmoid() * c_child)
        h = o.sigmoid() * c.tanh()
        ctx.save_for_backward(i, o, u, f, c_child, parent, c)
        return h, c

    @staticmethod
    def backward(ctx, gh, gc):
        i, o, u, f, c_child, parent, c = ctx.saved_tensors
        si, so, sf = i.sigmoid(), o.sigmoid(), f.sigmoid()
        tu, tc = u.tanh(), c.tanh()
        go = gh * tc * so * (1 - so)
        gc = gc + gh * so * (1 - tc * tc)
        gi = gc * tu * si * (1 - si)
        gu = gc * si * (1 - tu * tu)
        gchild = gc[parent]
        return gi, go, gu, gchild * c_child * sf * (1 - sf), gchild * sf, None
