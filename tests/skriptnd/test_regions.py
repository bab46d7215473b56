"""Pools over regions of an image, whose cells are data."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.library import image
from tests.long_variants import every

REGIONS = np.float32(
    [[0, 0, 6, 8], [1.4, 2.5, 4.6, 6.4], [3, 3, 3, 3], [5, 6, 9, 12], [-3, -2, 2, 3], [4, 4, 2, 1], [20, 20, 22, 22]]
)
IMAGES = np.int32([0, 1, 0, 1, 0, 1, 0])


def pooled(x: np.ndarray, regions: np.ndarray, images: np.ndarray, size: list[int], mean: bool) -> np.ndarray:
    """As ONNX' MaxRoiPool does: rounded corners, both of which belong to the region, and bins that may overlap."""
    rank = len(size)
    corners = np.copysign(np.floor(np.abs(regions) + 0.5), regions).astype(int)
    found = np.zeros((len(regions), x.shape[1], *size))
    for k, corner in enumerate(corners):
        first, last = corner[:rank][::-1], corner[rank:][::-1]
        count = np.maximum(last - first + 1, 1)
        for place in np.ndindex(*size):
            low = first + np.floor(place * count / size).astype(int)
            high = first + np.ceil((np.array(place) + 1) * count / size).astype(int)
            cut = [slice(*np.clip(pair, 0, end)) for *pair, end in zip(low, high, x.shape[2:], strict=True)]
            cells = x[(images[k], slice(None), *cut)].reshape(x.shape[1], -1)
            if cells.shape[1]:
                found[(k, slice(None), *place)] = cells.mean(1) if mean else cells.max(1)
    return found


@pytest.mark.parametrize("mean", every(2, [False, True]))
def test_pools_over_regions(mean: bool) -> None:
    pool = image.avg_roi_pool if mean else image.max_roi_pool
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 9, 7)).astype(np.float32)
    for size in ([2, 3], [1, 1]):
        wanted = pooled(x, REGIONS, IMAGES, size, mean)
        np.testing.assert_allclose(pool(x, REGIONS, IMAGES, output_size=size), wanted, atol=1e-6)
    line, solid = x[:, :, 0], rng.normal(size=(2, 2, 4, 5, 6)).astype(np.float32)
    regions = np.float32([[0, 4], [2, 8]])
    wanted = pooled(line, regions, IMAGES[:2], [3], mean)
    np.testing.assert_allclose(pool(line, regions, IMAGES[:2], output_size=[3]), wanted, atol=1e-6)
    regions = np.float32([[0, 1, 0, 5, 4, 3], [2, 2, 2, 4, 4, 3]])
    wanted = pooled(solid, regions, IMAGES[:2], [2, 2, 3], mean)
    np.testing.assert_allclose(pool(solid, regions, IMAGES[:2], output_size=[2, 2, 3]), wanted, atol=1e-6)
    tc.check_grads(lambda x: pool(x, REGIONS, IMAGES, output_size=[2, 3]), (x,))


def test_regions_of_other_images_and_sizes_are_refused() -> None:
    x = np.zeros((2, 3, 9, 7), np.float32)
    with pytest.raises(tc.DataIndexError, match="index 3 is out of range for axis 0 of `input`"):
        image.max_roi_pool(x, REGIONS, IMAGES + 3, output_size=[2, 2])
    with pytest.raises(tc.ShapeError, match="`output_size` has 1 items, and 2 are expected"):
        image.max_roi_pool(x, REGIONS, IMAGES, output_size=[2])
    with pytest.raises(tc.ShapeError, match="a size is not positive"):
        image.avg_roi_pool(x, REGIONS, IMAGES, output_size=[0, 2])
