"""Some of the programs in PyTorch, from its own operators, as an oracle for gradients."""

from __future__ import annotations

from typing import Any

__all__ = ["torch_references"]


def torch_references() -> dict[str, Any]:
    """Functions of tensors by the names of the programs. ``ImportError`` without PyTorch."""
    import torch
    from torch.nn import functional

    def convolution(x: Any, k: Any, **options: Any) -> Any:
        # n x d and k d c
        out = functional.conv1d(x.permute(0, 2, 1), k.permute(2, 1, 0), **options)
        return out.permute(0, 2, 1)

    def convolution_2d(x: Any, k: Any, **options: Any) -> Any:
        # n x y d and p q d c
        out = functional.conv2d(x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1), **options)
        return out.permute(0, 2, 3, 1)

    return {
        "matmul": torch.matmul,
        "transpose": lambda a: a.T,
        "trace": torch.trace,
        "diagonal": torch.diagonal,
        "average": lambda a: a.mean(0),
        "cumulative_sum": lambda x: x.cumsum(0),
        "valid_convolution": convolution,
        "full_convolution": lambda x, c: functional.conv1d(
            x[None, None], c.flip(0)[None, None], padding=len(c) - 1
        ).flatten(),
        "strided_convolution_2d": lambda x, k: convolution_2d(x, k, stride=2),
        "dilated_convolution_2d": lambda x, k: convolution_2d(x, k, dilation=(2, 3)),
        "padded_convolution_2d": lambda x, k: functional.conv2d(x, k, padding=(k.shape[2] // 2, k.shape[3] // 2)),
        "max_pool": lambda x: functional.max_pool1d(x[None], 2)[0],
        "max_pool_up": lambda x: functional.max_pool1d(x[None], 2, ceil_mode=True)[0],
        "upsample": lambda x: x.repeat_interleave(2, 0).repeat_interleave(3, 1),
        "softmax": lambda x: torch.softmax(x, 1),
        "log_sum_exp": lambda x: torch.logsumexp(x, 1),
        "layer_norm": lambda x, scale, shift: functional.layer_norm(x, (x.shape[1],), scale, shift, 1e-5),
        "gather_rows": lambda table, ids: functional.embedding(ids, table),
        "scatter_add": lambda rows, ids, values: rows.index_add(0, ids, values),
        "outer_difference": lambda x, y: x[:, None] - y[None],
        "pairwise_distance": lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
        "attention": lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, scale=1.0),
    }
