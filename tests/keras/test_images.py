"""Images from files and arrays."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skcalfair.keras._images import (
    BadImageError,
    as_images,
    channel_statistics,
    inspect_images,
    read_rows,
)

image_module = pytest.importorskip("PIL.Image")


def test_files_and_arrays_give_the_same_pixels(lesion_files):
    paths, images, _ = lesion_files
    containers = [
        paths,
        paths.astype(object),
        list(paths),
        [Path(path) for path in paths],
        pd.Series(paths),
        pd.Series(paths, dtype="category"),
        pd.DataFrame({"path": paths}),
        pl.Series(paths.tolist()),
        images.astype(np.float64),
        images.astype(np.int64),
    ]
    rows = np.array([3, 0, 23])
    for size in [(40, 40), (32, 32), (33, 48)]:
        expected = read_rows(as_images(images), rows, size)
        assert expected.shape == (3, *size, 3)
        assert expected.dtype == np.float32
        for container in containers:
            found = read_rows(as_images(container), rows, size)
            np.testing.assert_array_equal(found, expected)


def test_resizing_averages_and_keeps_fractions():
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 1, size=(2, 64, 64, 3))
    (half,) = read_rows(as_images(images), np.array([1]), (32, 32))
    assert half.mean() == pytest.approx(images[1].mean(), abs=0.01)
    assert half.std() < images[1].std() / 1.5  # it does not alias
    whole = read_rows(as_images(np.round(255 * images)), np.array([0]), (32, 32))
    fractions = read_rows(as_images(255 * images), np.array([0]), (32, 32))
    assert np.abs(whole - fractions).max() < 1.5  # rounded twice


def test_memory_maps_stay_on_disk(tmp_path):
    path = tmp_path / "images.npy"
    np.save(path, np.zeros((4, 32, 32, 3), dtype=np.uint8))
    mapped = np.load(path, mmap_mode="r")
    assert as_images(mapped).pixels is mapped


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            np.zeros((4, 32, 32)),
            r"shape \(n_samples, height, width, 3\).*\(4, 32, 32\)",
        ),
        (np.zeros((4, 32, 32, 1)), r"got an array of shape \(4, 32, 32, 1\)"),
        (np.zeros((0, 32, 32, 3)), "X is empty"),
        (np.zeros((2, 0, 32, 3)), "images of no size"),
        (np.zeros((2, 8, 8, 3), dtype=complex), "numeric pixels; got dtype complex"),
        ([], "X must be an array|X is empty"),
        (np.array([], dtype=object), "X is empty"),
        (np.array([["a.png", "b.png"]]), "one column of image paths; got 2"),
        (np.array(["a.png", None], dtype=object), "got None at row 1"),
        (np.array([b"a.png"]), "must hold image paths"),
    ],
)
def test_what_holds_no_images_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_images(X)


def test_pixels_must_be_finite():
    images = np.zeros((3, 8, 8, 3))
    images[2, 0, 0, 0] = np.nan
    with pytest.raises(BadImageError, match="NaN or infinity in the image at row 2"):
        read_rows(as_images(images), np.arange(3), (8, 8))


def bad_file(kind, folder):
    path = folder / f"{kind}.png"
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    good = image_module.fromarray(noise)
    if kind in ("L", "RGBA", "P", "CMYK"):
        path = path.with_suffix(".tif")
        good.convert(kind).save(path)
    elif kind == "truncated":
        good.save(path)
        path.write_bytes(path.read_bytes()[:1000])
    elif kind == "text":
        path.write_text("no image")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "no pixels":
        # A bitmap whose header says that it is 0 pixels wide.
        path = path.with_suffix(".bmp")
        good.save(path)
        header = bytearray(path.read_bytes())
        header[18:22] = (0).to_bytes(4, "little")
        path.write_bytes(bytes(header))
    return str(path)


BAD = ["L", "RGBA", "P", "CMYK", "truncated", "text", "empty", "no pixels", "missing"]


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_named(kind, tmp_path):
    path = bad_file(kind, tmp_path)
    with pytest.raises(BadImageError, match=Path(path).name):
        as_images([path]).read_one(0, (32, 32))


def test_one_pass_lists_all_bad_images(lesion_files, tmp_path):
    paths, _, _ = lesion_files
    bad = [bad_file(kind, tmp_path) for kind in BAD]
    images = as_images([paths[0], *bad, paths[1]])
    found = inspect_images(images, (32, 32), skip_bad=True)
    assert found.bad == list(range(1, len(bad) + 1))
    for path, complaint in zip(bad, found.complaints, strict=True):
        assert path in complaint
    with pytest.raises(BadImageError, match=r"L\.tif"):
        inspect_images(images, (32, 32), skip_bad=False)


def test_statistics_are_those_of_the_pixels(lesion_files):
    paths, images, _ = lesion_files
    rows = np.array([1, 4, 7, 20])
    weights = np.array([1.0, 2.0, 1.0, 3.0])
    found = inspect_images(as_images(paths), (40, 40), skip_bad=False)
    mean, std = channel_statistics(found, rows, weights)
    repeated = np.repeat(images[rows], weights.astype(int), axis=0).astype(np.float64)
    np.testing.assert_allclose(mean, repeated.mean(axis=(0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(std, repeated.std(axis=(0, 1, 2)), rtol=1e-12)


def test_a_constant_channel_is_divided_by_one():
    images = np.full((3, 32, 32, 3), 255.0)
    images[:, :16, :, 0] = 1.0
    found = inspect_images(as_images(images), (32, 32), skip_bad=False)
    mean, std = channel_statistics(found, np.arange(3), np.ones(3))
    np.testing.assert_allclose(mean, [128.0, 255.0, 255.0])
    np.testing.assert_allclose(std, [127.0, 1.0, 1.0])
