"""Geometry pieces: cameras, point clouds, meshes, signed distances, volume rendering."""

import torch
import torch.nn as nn
from torch.autograd import Function


class PinholeProject(Function):
    """Pixel coordinates of camera-space points.

    points: (N, 3), intrinsics: (fx, fy, cx, cy).  Depths below ``near`` count as ``near``.
    """

    @staticmethod
    def forward(ctx, points, intrinsics, near=0.1):
        if intrinsics.shape != (4,):
            raise ValueError("intrinsics must be (fx, fy, cx, cy)")
        fx, fy, cx, cy = intrinsics
        depth = points[:, 2].clamp(min=near)
        ctx.save_for_backward(points, intrinsics)
        ctx.near = near
        u = fx * points[:, 0] / depth + cx
        v = fy * points[:, 1] / depth + cy
        return torch.stack([u, v], dim=1)

    @staticmethod
    def backward(ctx, grad_uv):
        points, intrinsics = ctx.saved_tensors
        gu, gv = grad_uv.unbind(1)
        inv = 1.0 / points[:, 2].clamp(min=ctx.near)
        x, y = points[:, 0] * inv, points[:, 1] * inv
        gx = gu * intrinsics[0] * inv
        gy = gv * intrinsics[1] * inv
        gz = -(gu * intrinsics[0] * x + gv * intrinsics[1] * y) * inv
        gz = gz * (points[:, 2] > 0)
        grad_points = torch.stack([gx, gy, gz], dim=1)
        grad_k = torch.stack([(gu * x).sum(), (gv * y).sum(), gu.sum(), gv.sum()])
        return grad_points, grad_k, None


def _sample_positions(flow):
    h, w = flow.shape[-2:]
    ys = torch.arange(h, device=flow.device, dtype=flow.dtype).view(1, h, 1)
    xs = torch.arange(w, device=flow.device, dtype=flow.dtype).view(1, 1, w)
    return xs + flow[:, 0], ys + flow[:, 1]


class BilinearFlowWarp(Function):
    """Backward warping: out(p) = image(p + flow(p)), zero outside of the image.

    image (B, C, H, W); flow (B, 2, H, W) in pixels, x first.
    """

    @staticmethod
    def forward(ctx, image, flow):
        b, _, h, w = image.shape
        x, y = _sample_positions(flow)
        x0, y0 = x.floor(), y.floor()
        bi = torch.arange(b, device=image.device).view(b, 1, 1)
        out = torch.zeros_like(image)
        for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
            xi, yi = x0 + dx, y0 + dy
            ok = (xi >= 0) & (xi < w) & (yi >= 0) & (yi < h)
            wgt = (1 - (x - xi).abs()) * (1 - (y - yi).abs()) * ok
            px, py = xi.clamp(0, w - 1).long(), yi.clamp(0, h - 1).long()
            out += image[bi, :, py, px].permute(0, 3, 1, 2) * wgt.unsqueeze(1)
        ctx.save_for_backward(image, flow)
        return out

    @staticmethod
    def backward(ctx, grad):
        image, flow = ctx.saved_tensors
        b, c, h, w = image.shape
        x, y = _sample_positions(flow)
        x0, y0 = x.floor(), y.floor()
        grad_image = grad.new_zeros(b, c, h * w)
        gfx, gfy = torch.zeros_like(x), torch.zeros_like(y)
        for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
            xi, yi = x0 + dx, y0 + dy
            ok = (xi >= 0) & (xi < w) & (yi >= 0) & (yi < h)
            wx, wy = 1 - (x - xi).abs(), 1 - (y - yi).abs()
            px, py = xi.clamp(0, w - 1).long(), yi.clamp(0, h - 1).long()
            idx = (py * h + px).reshape(b, 1, -1).expand(-1, c, -1)
            g = grad * ok.unsqueeze(1)
            grad_image = grad_image.scatter_add(
                2, idx, (g * (wx * wy).unsqueeze(1)).flatten(2)
            )
            s = (g * image.flatten(2).gather(2, idx).view(b, c, h, w)).sum(1)
            gfx = gfx + s * wy * (2 * dx - 1)
            gfy = gfy + s * wx * (2 * dy - 1)
        return grad_image.view(b, c, h, w), torch.stack([gfx, gfy], 1)


class VoxelMeanPool(Function):
    """Mean of the point features in each voxel; points with id -1 are dropped."""

    @staticmethod
    def forward(ctx, feats, voxel_id, num_voxels):
        keep = voxel_id >= 0
        ids = voxel_id[keep]
        counts = torch.bincount(ids, minlength=num_voxels).clamp(min=1)
        pooled = feats.new_zeros(num_voxels, feats.shape[1])
        pooled.index_add_(0, ids, feats[keep])
        ctx.save_for_backward(voxel_id, counts)
        return pooled / counts.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_pooled):
        voxel_id, counts = ctx.saved_tensors
        safe = voxel_id.clamp(min=0)
        grad = grad_pooled[safe]
        return grad * (voxel_id >= 0).unsqueeze(1), None, None


class FaceNormalArea(Function):
    """Unit normals (F, 3) and areas (F,) of a triangle mesh without degenerate faces."""

    @staticmethod
    def forward(ctx, verts: torch.Tensor, faces: torch.Tensor):
        a, b, c = verts[faces].unbind(1)
        cross = torch.linalg.cross(b - a, c - a)
        length = cross.norm(dim=1)
        ctx.save_for_backward(verts, faces)
        return cross / length.unsqueeze(1), 0.5 * length

    @staticmethod
    def backward(ctx, g_normal, g_area):
        verts, faces = ctx.saved_tensors
        a, b, c = verts[faces].unbind(1)
        e1, e2 = b - a, c - a
        cross = torch.linalg.cross(e1, e2)
        length = cross.norm(dim=1, keepdim=True)
        normal = cross / length
        tangent = g_normal - normal * (normal * g_normal).sum(1, keepdim=True)
        g_cross = tangent / length + 0.5 * g_area.unsqueeze(1) * normal
        g1 = torch.linalg.cross(e2, g_cross)
        g2 = torch.linalg.cross(g_cross, e1)
        grad = torch.zeros_like(verts)
        grad.index_add_(0, faces[:, 0], -g1 - g2)
        grad[faces[:, 1]] += g1
        grad.index_add_(0, faces[:, 2], g2)
        return grad, None


class ChamferNearest(Function):
    """Squared distance of every point of ``a`` to its nearest in ``b``, and which that is."""

    @staticmethod
    def forward(ctx, a, b):
        sq = ((a[:, None] - b[None]) ** 2).sum(-1)
        dist, idx = sq.min(dim=1)
        ctx.save_for_backward(a, b, idx)
        ctx.mark_non_differentiable(idx)
        return dist, idx

    @staticmethod
    def backward(ctx, grad_dist, _grad_idx):
        a, b, idx = ctx.saved_tensors
        grad_a = grad_b = None
        pull = 2.0 * grad_dist.unsqueeze(1) * (a - b[idx])
        if ctx.needs_input_grad[0]:
            grad_a = pull
        if ctx.needs_input_grad[1]:
            grad_b = torch.zeros_like(b).index_add(0, idx, pull)
        return grad_a, grad_b


class TsdfTruncate(Function):
    """Weighted truncated signed distance; weight broadcasts against sdf."""

    @staticmethod
    def forward(ctx, sdf, weight, trunc: float = 0.1):
        ctx.save_for_backward(sdf, weight)
        ctx.trunc = trunc
        return weight * (sdf / trunc).clamp(-1.0, 1.0)

    @staticmethod
    def backward(ctx, grad):
        sdf, weight = ctx.saved_tensors
        scaled = sdf / ctx.trunc
        inside = scaled.abs() < ctx.trunc
        grad_sdf = (grad * weight * inside / ctx.trunc).sum_to_size(sdf.shape)
        grad_w = (grad * scaled.clamp(-1.0, 1.0)).sum_to_size(weight.shape)
        return grad_sdf, grad_w, None


class EikonalPenalty(Function):
    """weight * (|g| - 1)^2 over the samples marked valid (padding rows are zeros)."""

    @staticmethod
    def forward(ctx, field_grad, valid, weight=0.1, reduction="mean"):
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"unknown reduction {reduction!r}")
        pen = weight * (field_grad.norm(dim=-1) - 1.0) ** 2 * valid
        ctx.save_for_backward(field_grad, valid)
        ctx.weight, ctx.reduction = weight, reduction
        if reduction == "none":
            return pen
        total = pen.sum()
        return total / valid.sum().clamp(min=1) if reduction == "mean" else total

    @staticmethod
    def backward(ctx, grad):
        field_grad, valid = ctx.saved_tensors
        if ctx.reduction == "mean":
            grad = grad / valid.sum().clamp(min=1)
        norm = field_grad.norm(dim=-1)
        coef = 2.0 * ctx.weight * (norm - 1.0) / norm * valid
        return (grad * coef).unsqueeze(-1) * field_grad, None, None, None


class QuaternionRotate(Function):
    """Rotates v (B, N, 3) by q (B, 4), real part first; q need not have unit length."""

    @staticmethod
    def forward(ctx, q, v):
        unit = q / q.norm(dim=1, keepdim=True)
        w, u = unit[:, None, :1], unit[:, None, 1:].expand_as(v)
        t = torch.linalg.cross(u, v)
        ctx.save_for_backward(q, v)
        return v + 2.0 * (w * t + torch.linalg.cross(u, t))

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        norm = q.norm(dim=1, keepdim=True)
        unit = q / norm
        w, u = unit[:, None, :1], unit[:, None, 1:].expand_as(v)
        t = torch.linalg.cross(u, g)
        grad_v = g + 2.0 * (torch.linalg.cross(u, t) - w * t)

        def dot(a, b):
            return (a * b).sum(-1, keepdim=True)

        grad_w = 2.0 * dot(g, torch.linalg.cross(u, v)).sum(1)
        grad_u = w * torch.linalg.cross(v, g) + g * dot(u, v)
        grad_u = grad_u + v * dot(u, g) - 2.0 * u * dot(g, v)
        grad_unit = torch.cat([grad_w, 2.0 * grad_u.sum(1)], dim=1)
        grad_q = grad_unit / norm
        return grad_q, grad_v


class AlphaComposite(Function):
    """Emission-absorption rendering along rays.

    sigma, delta: (R, S); rgb: (R, S, 3); background: (3,) or None.
    Gives the colour (R, 3) and the opacity (R,).
    """

    @staticmethod
    def forward(ctx, sigma, delta, rgb, background=None):
        trans = torch.exp(-torch.cumsum(sigma * delta, dim=1))
        before = torch.cat([torch.ones_like(trans[:, :1]), trans[:, :-1]], dim=1)
        colour = ((before - trans).unsqueeze(-1) * rgb).sum(1)
        if background is not None:
            colour = colour + trans[:, -1:] * background
        ctx.save_for_backward(sigma, delta, rgb, background)
        return colour, 1.0 - trans[:, -1]

    @staticmethod
    def backward(ctx, g_col, g_op):
        sigma, delta, rgb, background = ctx.saved_tensors
        trans = torch.exp(-torch.cumsum(sigma * delta, dim=1))
        before = torch.cat([torch.ones_like(trans[:, :1]), trans[:, :-1]], dim=1)
        weight, last = before - trans, trans[:, -1:]
        shade = (rgb * g_col.unsqueeze(1)).sum(-1)
        part = weight * shade
        after = part.flip(1).cumsum(1).flip(1)
        g_tau = trans * shade - after + last * g_op.unsqueeze(1)
        g_bg = None
        if background is not None:
            g_tau = g_tau - last * (g_col * background).sum(1, keepdim=True)
            g_bg = (last * g_col).sum(0)
        g_rgb = weight.unsqueeze(-1) * g_col.unsqueeze(1)
        return g_tau * delta, g_tau * sigma, g_rgb, g_bg


class _RadialFn(Function):
    @staticmethod
    def forward(xy, k):
        r2 = (xy * xy).sum(-1, keepdim=True)
        return xy * (1.0 + k[0] * r2 + k[1] * r2 * r2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        xy, k = ctx.saved_tensors
        r2 = (xy * xy).detach().sum(-1, keepdim=True)
        ds = (g * xy).sum(-1, keepdim=True)
        grad_xy = g * (1.0 + k[0] * r2 + k[1] * r2 * r2)
        grad_xy = grad_xy + 2.0 * xy * ds * (k[0] + 2.0 * k[1] * r2)
        grad_k = torch.stack([(ds * r2).sum(), (ds * r2 * r2).sum()])
        return grad_xy, grad_k


class RadialDistortion(nn.Module):
    """Brown model with two radial terms, for normalised coordinates (..., 2)."""

    def __init__(self, k1=0.0, k2=0.0):
        super().__init__()
        self.k = nn.Parameter(torch.tensor([k1, k2]))

    def forward(self, xy):
        return _RadialFn.apply(xy, self.k)
