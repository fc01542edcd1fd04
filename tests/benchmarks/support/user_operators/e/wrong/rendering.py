"""Differentiable rendering and geometry pieces used by the fitting scripts."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class AlphaComposite(Function):
    """Front-to-back compositing along rays.

    alpha: (R, S) opacities in [0, 1), color: (R, S, C), background: (C,) or None.
    Returns the pixel colour (R, C) and the accumulated opacity (R,).
    """

    @staticmethod
    def forward(ctx, alpha, color, background=None):
        trans = torch.cumprod(1 - alpha, dim=1)
        ahead = F.pad(trans[:, :-1], (1, 0), value=1.0)
        rgb = ((alpha * ahead).unsqueeze(-1) * color).sum(1)
        if background is not None:
            rgb = rgb + trans[:, -1:] * background
        ctx.save_for_backward(alpha, color, background)
        return rgb, 1 - trans[:, -1]

    @staticmethod
    def backward(ctx, g_rgb, g_acc):
        alpha, color, background = ctx.saved_tensors
        trans = torch.cumprod(1 - alpha, dim=1)
        ahead = F.pad(trans[:, :-1], (1, 0), value=1.0)
        weight = alpha * ahead
        contrib = (color * g_rgb.unsqueeze(1)).sum(-1)
        # gradient with respect to the light that is left behind the last sample
        g_left = torch.zeros_like(g_acc)
        g_background = None
        if background is not None:
            g_left = g_left + (g_rgb * background).sum(-1)
            g_background = (trans[:, -1:] * g_rgb).sum(0)
        seen = weight * contrib
        behind = seen.flip(1).cumsum(1).flip(1) - seen
        behind = behind + trans[:, -1:] * g_left.unsqueeze(1)
        g_alpha = ahead * contrib - behind / (1 - alpha)
        g_color = weight.unsqueeze(-1) * g_rgb.unsqueeze(1)
        return g_alpha, g_color, g_background


def composite(alpha, color, background=None):
    return AlphaComposite.apply(alpha, color, background)


class SoftDiskCoverage(Function):
    """Probability that a pixel is covered by at least one blurry disk."""

    @staticmethod
    def forward(pixels, centers, radii, sigma=1.0):
        dist = (pixels.unsqueeze(1) - centers.unsqueeze(0)).norm(dim=-1)
        hit = torch.sigmoid((radii - dist) / sigma)
        return 1 - (1 - hit).prod(dim=1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pixels, centers, radii, sigma = inputs
        ctx.save_for_backward(pixels, centers, radii)
        ctx.sigma = sigma

    @staticmethod
    def backward(ctx, grad):
        pixels, centers, radii = ctx.saved_tensors
        diff = pixels.unsqueeze(1) - centers.unsqueeze(0)
        dist = diff.norm(dim=-1).clamp_min(1e-12)
        hit = torch.sigmoid((radii - dist) / ctx.sigma)
        free = (1 - hit).prod(dim=1, keepdim=True)
        g_edge = grad.unsqueeze(1) * free * hit
        pull = (g_edge / dist).unsqueeze(-1) * diff
        return -pull.sum(1), pull.sum(0), g_edge.sum(0), None


class BoxSDF(Function):
    """Signed distance of points (N, D) to an axis-aligned box with half sizes (D,)."""

    @staticmethod
    def forward(ctx, points: torch.Tensor, half: torch.Tensor) -> torch.Tensor:
        assert points.dim() == 2 and half.shape == points.shape[1:]
        q = points.abs() - half
        ctx.save_for_backward(points, half)
        return q.clamp(min=0).norm(dim=-1) + q.amax(dim=-1).clamp(max=0)

    @staticmethod
    def backward(ctx, grad_out):
        points, half = ctx.saved_tensors
        q = points.abs() - half
        outer = q.clamp(min=0)
        dist = outer.norm(dim=-1, keepdim=True)
        slope = outer / dist
        face = F.one_hot(q.argmax(dim=-1), q.shape[-1]).to(q.dtype)
        slope = slope + face * (q.amax(dim=-1, keepdim=True) < 0)
        g_q = grad_out.unsqueeze(-1) * slope
        return g_q * points.sign(), -g_q.sum(0)


class ChamferDistance(Function):
    """Symmetric squared Chamfer distance between two clouds (N, D) and (M, D)."""

    @staticmethod
    def forward(ctx, a, b):
        if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1]:
            raise ValueError("expected clouds of shape (N, D) and (M, D)")
        d2 = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(-1)
        to_b, near_b = d2.min(dim=1)
        to_a, near_a = d2.min(dim=0)
        ctx.save_for_backward(a, b, near_b, near_a)
        return to_b.mean() + to_a.mean()

    @staticmethod
    def backward(ctx, g):
        a, b, near_b, near_a = ctx.saved_tensors
        step_a = (a - b[near_b]) * (2.0 * g / a.shape[0])
        step_b = (b - a[near_a]) * (2.0 * g / a.shape[0])
        grad_a = step_a.index_add(0, near_a, -step_b)
        grad_b = step_b.index_add(0, near_b, -step_a)
        return grad_a, grad_b


class HomographyWarp(Function):
    """Map image points (N, 2) through a 3x3 homography."""

    @staticmethod
    def forward(ctx, pts, H):
        hom = F.pad(pts, (0, 1), value=1.0)
        q = hom @ H.t()
        ctx.save_for_backward(pts, H)
        return q[:, :2] / q[:, 2:]

    @staticmethod
    def backward(ctx, g):
        pts, H = ctx.saved_tensors
        hom = F.pad(pts, (0, 1), value=1.0)
        q = hom @ H.t()
        w = q[:, 2:]
        g_w = -(g * q[:, :2]).sum(1, keepdim=True) / w**2
        g_q = torch.cat([g / w, g_w], dim=1)
        g_pts = (g_q @ H.t())[:, :2]
        return g_pts, g_q.t() @ hom


class KabschRotation(Function):
    """Rotation closest to a correlation matrix, det(R) = +1. Works on (..., n, n)."""

    @staticmethod
    def forward(ctx, corr):
        U, S, Vh = torch.linalg.svd(corr)
        signs = torch.ones_like(S)
        signs[..., -1] = torch.sign(torch.linalg.det(U @ Vh))
        U = U * signs.unsqueeze(-2)
        ctx.save_for_backward(U, S, Vh)
        return U @ Vh

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_R):
        U, S, Vh = ctx.saved_tensors
        inner = U.mT @ grad_R @ Vh.mT
        pair = S.unsqueeze(-1) + S.unsqueeze(-2)
        return U @ ((inner - inner.mT) / pair) @ Vh


class PinholeProject(Function):
    """xyz (N, 3) in camera space -> uv (N, 2) and a flag for points in front."""

    @staticmethod
    def forward(ctx, xyz, focal=1.0, near=0.1):
        z = xyz[:, 2]
        in_front = z > near
        ctx.save_for_backward(xyz)
        ctx.focal, ctx.near = focal, near
        ctx.mark_non_differentiable(in_front)
        return focal * xyz[:, :2] / z.clamp(min=near).unsqueeze(-1), in_front

    @staticmethod
    def backward(ctx, g_uv, _):
        (xyz,) = ctx.saved_tensors
        xy, z = xyz[:, :2], xyz[:, 2]
        zc = z.clamp(min=ctx.near)
        g_xy = ctx.focal * g_uv / zc.unsqueeze(-1)
        g_z = -ctx.focal * (g_uv * xy).sum(-1) / zc.pow(2)
        return torch.cat([g_xy, g_z.unsqueeze(-1)], dim=-1), None, None


class BarycentricInterp(Function):
    """Interpolate vertex attributes at the pixels of a rasterised mesh.

    attrs (V, C), faces (F, 3) long, face_idx (P,) long with -1 for background,
    bary (P, 3). Background pixels are zero.
    """

    @staticmethod
    def forward(ctx, attrs, faces, face_idx, bary):
        hit = (face_idx >= 0).unsqueeze(-1)
        tri = faces[face_idx.clamp(min=0)]
        ctx.save_for_backward(attrs, bary, tri, hit)
        return (bary.unsqueeze(-1) * attrs[tri]).sum(1) * hit

    @staticmethod
    def backward(ctx, grad):
        attrs, bary, tri, hit = ctx.saved_tensors
        grad = (grad * hit).unsqueeze(1)
        g_attrs = g_bary = None
        if ctx.needs_input_grad[0]:
            src = (bary.unsqueeze(-1) * grad).reshape(-1, attrs.shape[1])
            g_attrs = torch.zeros(attrs.shape, device=attrs.device)
            g_attrs = g_attrs.index_add(0, tri.reshape(-1), src)
        if ctx.needs_input_grad[3]:
            g_bary = (attrs[tri] * grad).sum(-1)
        return g_attrs, None, None, g_bary


class EdgeSpring(Function):
    """Half squared stretch of mesh edges; edges is (E, 2) long, rest (E,) or None."""

    @staticmethod
    def forward(ctx, verts, edges, rest=None, reduction="mean"):
        if reduction not in ("mean", "sum"):
            raise ValueError(f"unknown reduction {reduction}")
        d = verts[edges[:, 0]] - verts[edges[:, 1]]
        if rest is None:
            energy = 0.5 * d.pow(2).sum(-1)
        else:
            energy = 0.5 * (d.norm(dim=-1) - rest).pow(2)
        ctx.save_for_backward(verts, edges, rest)
        ctx.weight = 1.0 / edges.shape[0] if reduction == "mean" else 1.0
        return energy.sum() * ctx.weight

    @staticmethod
    def backward(ctx, g):
        verts, edges, rest = ctx.saved_tensors
        i, j = edges.unbind(1)
        push = (verts[i] - verts[j]) * (g * ctx.weight)
        g_rest = None
        if rest is not None:
            length = (verts[i] - verts[j]).norm(dim=-1).clamp_min(1e-8)
            push = push * (1 - rest / length).unsqueeze(-1)
            g_rest = (rest - length) * (g * ctx.weight)
        gv = torch.zeros_like(verts)
        gv[i] += push
        gv.index_add_(0, j, -push)
        return gv, None, g_rest, None


class _RadialFn(Function):
    @staticmethod
    def forward(ctx, uv, k, center):
        d = uv - center
        r2 = d.pow(2).sum(-1, keepdim=True)
        ctx.save_for_backward(uv, k, center)
        return center + d * (1 + k[0] * r2 + k[1] * r2**2)

    @staticmethod
    def backward(ctx, g):
        uv, k, center = ctx.saved_tensors
        d = uv - center
        r2 = d.pow(2).sum(-1, keepdim=True)
        along = (g * d).sum(-1, keepdim=True)
        g_d = g * (1 + k[0] * r2 + k[1] * r2**2)
        g_d = g_d + 2 * d * along * (k[0] + k[1] * r2)
        g_k = torch.stack([(along * r2).sum(), (along * r2**2).sum()])
        return g_d, g_k, (g - g_d).sum(0)


class RadialDistortion(nn.Module):
    """Two-coefficient radial lens distortion around a fixed centre."""

    def __init__(self, k1=0.1, k2=-0.02, center=(0.0, 0.0)):
        super().__init__()
        self.k = nn.Parameter(torch.tensor([k1, k2]))
        self.register_buffer("center", torch.tensor(center))

    def forward(self, uv):
        assert uv.dim() == 2 and uv.shape[-1] == 2
        return _RadialFn.apply(uv, self.k, self.center)
