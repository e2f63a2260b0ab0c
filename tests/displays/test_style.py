import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skcalfair.displays import _style, _tables


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_series_differ_in_more_than_colour():
    styles = [_style.series_style(i) for i in range(8)]
    for key in ("color", "marker", "linestyle"):
        assert len({str(style[key]) for style in styles}) == 8
    assert len({_style.fill_style(i)["hatch"] for i in range(8)}) == 8
    assert _style.series_style(8) == styles[0]


def test_fill_keeps_its_transparency():
    assert _style.fill_style(0, alpha=0.5)["facecolor"] == (
        0.0, 0x72 / 255, 0xB2 / 255, 0.5,
    )  # fmt: skip


def test_axes_given_or_new():
    _, ax = plt.subplots()
    assert _style.new_axes(ax) is ax
    assert _style.new_axes().figure is not ax.figure
    assert _style.grid_of_axes(None, 2, 3).shape == (2, 3)
    assert _style.grid_of_axes(ax, 1, 1)[0, 0] is ax
    _, several = plt.subplots(2, 2)
    assert _style.grid_of_axes(several, 1, 4).shape == (1, 4)
    with pytest.raises(ValueError, match=r"each of the 3 panels .* got 4"):
        _style.grid_of_axes(several, 1, 3)


def test_despine():
    _, axes = plt.subplots(1, 2)
    _style.despine(axes)
    assert not any(ax.spines["top"].get_visible() for ax in axes)


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (_style.new_axes, lambda: _style.grid_of_axes(None, 1, 2)):
        with pytest.raises(ImportError, match=r"skcalfair\[plot\]"):
            draw()


def test_labels():
    assert _tables.metric_label("expected_calibration_error") == "ECE"
    assert _tables.metric_label("my_metric") == "my_metric"
    assert _tables.group_label(("F", 1)) == "F & 1"
    assert _tables.group_label(np.int64(3)) == "3"
