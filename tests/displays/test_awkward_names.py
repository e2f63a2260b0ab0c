"""Names that legends or the mathematics of matplotlib would swallow, everywhere."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.text import Text

from skcalfair.datasets import BetaDecalibrator
from skcalfair.displays import (
    DecalibrationDisplay,
    DominanceDisplay,
    GroupBalanceDisplay,
    GroupRunsDisplay,
    ReliabilityDisplay,
    RocReadersDisplay,
    SampleSizeDisplay,
)
from skcalfair.displays import _style as style
from skcalfair.dominance import DominanceTable

LONG = "a name of some seventy characters, which is cut in its middle, number 2"
MATHS, HIDDEN = "cost$a_$b^ 5%", "_hidden $a_b$"
NAMES = [MATHS, HIDDEN, LONG]


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def dominance_table(names, **options):
    """A model with the first name; each reader is best somewhere."""
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.4).astype(int)
    signal = 2.5 * y + rng.normal(size=400)
    columns = {names[0]: signal + 2 * rng.normal(size=400)}
    for name, cut in zip(names[1:], np.linspace(0, 2.5, len(names) - 1), strict=True):
        columns[name] = (signal > cut).astype(int)
    X = pd.DataFrame(columns)
    return DominanceTable(random_state=0, **options).fit(X, y), X, y


def roc_readers():
    table, X, y = dominance_table(NAMES)
    return RocReadersDisplay.from_table(table, X, y, points=[(0.4, 1.0)])


def dominance():
    table, _, _ = dominance_table(NAMES, n_bootstrap=20)
    return DominanceDisplay.from_table(table, points=[(0.4, 1.0)], prevalence=0.1)


def reliability():
    y = np.tile([0, 1], 30)
    groups = np.repeat(NAMES, 20)
    return ReliabilityDisplay.from_predictions(
        y, np.linspace(0, 1, 60), sensitive_features=groups, n_bins=3
    )


def group_balance():
    return GroupBalanceDisplay(
        pd.DataFrame({"group": NAMES, "n": 10, "positives": 4}),
        class_names=(HIDDEN, MATHS),
    )


def group_runs():
    rows = [
        {"run": r, "group": g, "metric": m, "sampling": "naive", "value": r}
        for r in range(3)
        for g in NAMES
        for m in NAMES
    ]
    return GroupRunsDisplay(pd.DataFrame(rows))


def sample_size():
    rows = [
        {"fraction": f, "decalibration": d, "metric": m, "value": f}
        for f in (0.5, 1.0)
        for d in NAMES
        for m in NAMES
    ]
    return SampleSizeDisplay(pd.DataFrame(rows))


def decalibration():
    return DecalibrationDisplay.from_transformers(
        {name: BetaDecalibrator(k + 1, 2) for k, name in enumerate(NAMES)}
    )


DISPLAYS = {
    make.__name__: make
    for make in (
        decalibration,
        dominance,
        group_balance,
        group_runs,
        reliability,
        roc_readers,
        sample_size,
    )
}


def written(figure):
    """All texts of a figure, on one line each and without the escapes."""
    artists = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text()]
    assert not any(is_math_text(t.get_text()) for t in artists if "$" in t.get_text())
    lines = [line for t in artists for line in t.get_text().splitlines()]
    return [" ".join(t.get_text().split()).replace(r"\$", "$") for t in artists], lines


@pytest.mark.parametrize("kind", list(DISPLAYS))
def test_names_are_written_as_they_are(kind):
    display = DISPLAYS[kind]().plot()
    display.figure_.savefig(io.BytesIO(), format="png")
    texts, _ = written(display.figure_)
    for name in (MATHS, HIDDEN):
        assert any(name in text for text in texts)
    assert any(text.startswith("a name of some") for text in texts)
    assert not any(LONG in text for text in texts)


@pytest.mark.parametrize("kind", list(DISPLAYS))
def test_long_names_take_no_room_from_the_panels(kind):
    figure = DISPLAYS[kind]().plot().figure_
    figure.draw_without_rendering()
    _, lines = written(figure)
    assert max(len(line) for line in lines if "name" in line) <= style.NAME_WIDTH
    widths = [ax.get_position().width for ax in figure.axes]
    panels = len({round(ax.get_position().x0, 2) for ax in figure.axes})
    assert min(widths) > 0.45 / panels
    for legend in figure.legends:
        box, whole = legend.get_window_extent(), figure.bbox
        assert box.x0 >= -1
        assert box.x1 <= whole.x1 + 1
        assert box.y0 >= -1


def test_reliability_on_one_axes_has_all_groups_in_its_legend():
    _, ax = plt.subplots()
    reliability().plot(ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(texts) == 3


def test_many_co_owners_are_cut():
    names = [f"cardiologist {letter}" for letter in "ABCDEFGH"]
    points = pd.DataFrame({"name": names, "sensitivity": 0.8, "specificity": 0.9})
    table = DominanceTable.from_operating_points(points)
    short = "cardiologist A = cardiologist B\n= cardiologist C = 5 more"
    roc = RocReadersDisplay.from_table(table, points=[(0.5, 1.0)]).plot()
    texts = [text.get_text() for text in roc.figure_.legends[0].get_texts()]
    assert short in texts
    roc.figure_.draw_without_rendering()
    assert roc.ax_.get_window_extent().width > 0.4 * roc.figure_.bbox.width
    strip = DominanceDisplay.from_table(table, points=[(0.5, 1.0)]).plot()
    strip.figure_.draw_without_rendering()
    texts = [text.get_text() for text in strip.figure_.legends[0].get_texts()]
    assert any(text.endswith(f":\n{short}") for text in texts)
    # In full where there is room for it.
    assert " = ".join(names) in set(strip.frame()["name"])
    assert " = ".join(names) in set(roc.frame()["name"])
    bar = next(bar for bar in strip.ax_.patches if bar.get_hatch() == "")
    for text in strip.ax_.texts:
        assert text.get_window_extent().height < bar.get_window_extent().height


def test_many_counts_at_one_place_are_cut():
    n = np.arange(1, 7)
    points = pd.DataFrame({"name": list("abcdef"), "TP": 8 * n, "FN": 2 * n})
    points = points.assign(FP=n, TN=9 * n)
    table = DominanceTable.from_operating_points(points)
    legend = RocReadersDisplay.from_table(table).plot().figure_.legends[0]
    (entry,) = [t.get_text() for t in legend.get_texts() if "8/10" in t.get_text()]
    assert entry.startswith("a = b = c = d = e = f: 8/10, 1/10;")
    assert entry.endswith("24/30, 3/30; ...")


def test_names_that_are_cut_alike_keep_an_entry_each():
    a, b = ("x" * 45 + k + "x" * 45 for k in "ab")
    points = pd.DataFrame(
        {"name": [a, b], "sensitivity": [0.9, 0.6], "specificity": [0.6, 0.9]}
    )
    table = DominanceTable.from_operating_points(points)
    legend = RocReadersDisplay.from_table(table).plot().figure_.legends[0]
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts.count(style.wrapped(a)) == 2


class TestTexts:
    @pytest.mark.parametrize("text", ["$", "a$b", "$a$", "a\\$b", "a$b$c$", "plain"])
    def test_literal(self, text):
        figure = plt.figure()
        artist = figure.text(0, 0, style.literal(text))
        assert artist._preprocess_math(artist.get_text()) == (text, False)

    def test_label_is_not_hidden(self):
        assert style.label("_x") == " _x"
        assert style.label("x_") == "x_"
        assert style.label(3) == "3"

    def test_cut_keeps_both_ends(self):
        found = style.cut("network trained on all of it, fold 7", 20)
        assert len(found) <= 20
        assert found.startswith("network")
        assert found.endswith("old 7")
        assert style.cut("short\nname") == "short name"

    def test_wrapped(self):
        assert style.wrapped("short") == "short"
        assert style.wrapped("") == ""
        for text in (LONG, "x" * 200):
            lines = style.wrapped(text).splitlines()
            assert 1 < len(lines) <= 3
            assert max(map(len, lines)) <= style.NAME_WIDTH

    def test_owners(self):
        assert style.wrapped_owners("A = B") == "A = B"
        found = style.wrapped_owners(" = ".join([LONG] * 4)).splitlines()
        assert len(found) == 2
        assert found[1] == "= 3 more"
        assert max(map(len, found)) <= style.NAME_WIDTH

    def test_columns_of_a_legend(self):
        assert style.legend_columns(["a"] * 5, 8.5, 3, 0.2) == (3, 0.4)
        assert style.legend_columns(["a" * 60, "b\nb"], 8.5, 3, 0.2)[0] == 1
