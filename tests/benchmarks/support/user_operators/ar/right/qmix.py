import torch
import torch.nn as nn
import torch.nn.functional as F


class MonotonicMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qs, w1, b1, w2, v):
        h = torch.einsum("bn,bne->be", qs, w1.abs()) + b1
        ctx.save_for_backward(qs, w1, b1, w2)
        return (F.elu(h) * w2.abs()).sum(-1) + v

    @staticmethod
    def backward(ctx, g):
        qs, w1, b1, w2 = ctx.saved_tensors
        h = torch.einsum("bn,bne->be", qs, w1.abs()) + b1
        g = g.unsqueeze(-1)
        dw2 = g * F.elu(h) * w2.sign()
        dh = g * w2.abs() * torch.where(h > 0, torch.ones_like(h), h.clamp(max=0).exp())
        dqs = torch.einsum("be,bne->bn", dh, w1.abs())
        dw1 = qs.unsqueeze(-1) * dh.unsqueeze(1) * w1.sign()
        return dqs, dw1, dh, dw2, g.squeeze(-1)


class QMixer(nn.Module):
    def __init__(self, n_agents, state_dim, embed_dim=32):
        super().__init__()
        self.n_agents, self.embed_dim = n_agents, embed_dim
        self.hyper_w1 = nn.Linear(state_dim, n_agents * embed_dim)
        self.hyper_b1 = nn.Linear(state_dim, embed_dim)
        self.hyper_w2 = nn.Linear(state_dim, embed_dim)
        self.hyper_v = nn.Linear(state_dim, 1)

    def forward(self, agent_qs, states):
        w1 = self.hyper_w1(states).view(-1, self.n_agents, self.embed_dim)
        return MonotonicMix.apply(agent_qs, w1, self.hyper_b1(states), self.hyper_w2(states), self.hyper_v(states).squeeze(-1))
