"""The displays of the dominance table: the numbers stored and what is drawn."""

import subprocess
import sys
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from sklearn.metrics import auc, roc_auc_score, roc_curve

from skcalfair.displays import DominanceDisplay, RocReadersDisplay
from skcalfair.dominance import DominanceTable

PUBLISHED = pd.DataFrame(
    {
        "name": [
            "Model A",
            "Specialist A",
            "Specialist B",
            "Specialist C",
            "Model B",
        ],
        "kind": ["model", "reader", "reader", "reader", "model"],
        "sensitivity": [0.93, 0.89, 0.83, 0.75, 0.62],
        "specificity": [0.60, 0.73, 0.85, 0.92, 0.95],
    }
)
SLOPES = [0.11666667, 0.30769231, 0.5, 1.14285714, 4.33333333, 12.4]
CHOSEN = [(0.177, 1.0), (0.41, 1.0)]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def published():
    return DominanceTable.from_operating_points(PUBLISHED)


def reader_study(n_readers=5, n_models=1, n=500, seed=0):
    """Scores of models, calls of readers with their own thresholds, and the truth."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    X = {f"model {k + 1}": 1.6 * y + rng.normal(size=n) for k in range(n_models)}
    for k in range(n_readers):
        cut = rng.normal(0.8, 0.4)
        X[f"reader {k + 1}"] = (1.9 * y + rng.normal(size=n) > cut).astype(float)
    return pd.DataFrame(X), y


def with_uncertainty(table, n_names=3):
    """The parts of a table that displays read, with made-up bootstrap results."""
    segments = DominanceDisplay.from_table(table).segments
    owners, cpg = segments["owner"].to_numpy(), segments["cpg_to"].to_numpy()[:-1]
    breakpoints = pd.DataFrame(
        {
            "from_owner": owners[:-1],
            "to_owner": owners[1:],
            "cpg": cpg,
            "fieller": "",
            "fieller_low": cpg / 2,
            "fieller_high": cpg * 2,
            "percentile_low": cpg / 1.5,
            "percentile_high": cpg * 1.5,
        }
    )
    grid = np.logspace(-3, 3, 31)
    names = [*dict.fromkeys(owners), *(f"other {i}" for i in range(n_names))]
    support = pd.DataFrame(
        {
            "cpg": np.tile(grid, len(names)),
            "name": np.repeat(names, len(grid)),
            "support": np.tile(np.linspace(0, 1, len(grid)), len(names)),
        }
    )
    return SimpleNamespace(
        hull_=table.hull_,
        operating_points_=table.operating_points_,
        dominated_=table.dominated_,
        breakpoints_=breakpoints,
        dominance_support_=support.assign(kind="model"),
    )


def texts(ax):
    return [text.get_text() for text in ax.texts]


def legend_labels(*artists):
    """Labels of all legends of a figure and of its axes."""
    found = [
        legend
        for artist in artists
        for legend in (
            artist.legends if hasattr(artist, "legends") else [artist.get_legend()]
        )
        if legend is not None
    ]
    return [text.get_text() for legend in found for text in legend.get_texts()]


def drawn_boxes(artists):
    return [artist.get_window_extent() for artist in artists if artist.get_text()]


def any_overlap(boxes):
    return any(
        a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :] if a and b
    )


def inside_figure(figure, artist):
    box, whole = artist.get_window_extent(), figure.bbox
    return (
        box.x0 >= -1
        and box.y0 >= -1
        and box.x1 <= whole.x1 + 1
        and box.y1 <= whole.y1 + 1
    )


# DominanceDisplay


def test_strip_stores_the_segments_of_the_worked_example(published):
    display = DominanceDisplay.from_table(published, prevalence=0.177, points=CHOSEN)
    segments = display.segments
    assert segments["owner"].tolist() == [
        "always positive",
        *PUBLISHED["name"],
        "never positive",
    ]
    np.testing.assert_allclose(segments["cpg_from"], [0, *SLOPES], rtol=1e-7)
    np.testing.assert_allclose(segments["cpg_to"], [*SLOPES, np.inf], rtol=1e-7)
    assert display.chosen["owner"].tolist() == ["Model B", "Specialist C"]
    np.testing.assert_allclose(display.chosen["cpg"], [0.823 / 0.177, 0.59 / 0.41])


def test_convention_of_the_table_does_not_change_who_is_best(published):
    printed = DominanceTable.from_operating_points(PUBLISHED, convention="as_published")
    pd.testing.assert_frame_equal(
        DominanceDisplay.from_table(printed).segments,
        DominanceDisplay.from_table(published).segments,
    )


@pytest.mark.parametrize("cost_ratio", [0.01, 0.1, 0.5, 1.0, 3.0, 20.0])
def test_chosen_owner_is_the_winner_of_the_table(cost_ratio):
    X, y = reader_study()
    table = DominanceTable().fit(X, y)
    display = DominanceDisplay.from_table(table, points=[(0.2, cost_ratio)])
    assert display.chosen["owner"].item() == " = ".join(
        table.at(0.2, cost_ratio).winners
    )


def test_owners_that_tie_at_a_breakpoint_are_all_named(published):
    # Specialist A gives way to Specialist B at a gradient of exactly one half.
    display = DominanceDisplay.from_table(published, points=(0.5, 0.5))
    assert display.chosen["owner"].item() == "Specialist A = Specialist B"
    display = DominanceDisplay.from_table(
        published, points=(0.177, 0.5 * 0.177 / 0.823)
    )
    assert display.chosen["owner"].item() == "Specialist A = Specialist B"


def test_strip_draws_a_bar_for_each_segment_and_both_ends(published):
    display = DominanceDisplay.from_table(published, prevalence=0.177, points=CHOSEN)
    assert display.plot() is display
    ax = display.ax_
    assert display.figure_ is ax.figure
    assert display.support_ax_ is None
    bars = [bar for bars in ax.containers for bar in bars]
    assert len(bars) == 7
    # The bars cover the whole axis, the ends of which are 0 and infinity.
    left, right = ax.get_xlim()
    assert bars[0].get_x() == pytest.approx(left)
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(right)
    for bar, after in pairwise(bars):
        assert bar.get_x() + bar.get_width() == pytest.approx(after.get_x())
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[0] == "0"
    assert labels[-1] == "\N{INFINITY}"
    assert {"0.308", "0.5", "1.14", "4.33", "12.4"} <= set(labels)
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(sorted(ax.get_xticks())[1:-1], SLOPES, rtol=1e-7)


def test_owners_differ_without_colour(published):
    bars = [
        bar
        for container in DominanceDisplay.from_table(published).plot().ax_.containers
        for bar in container
    ]
    assert len({(bar.get_hatch(), to_hex(bar.get_edgecolor())) for bar in bars}) == 7


def test_every_owner_is_named_once_in_the_strip_or_in_the_legend(published):
    display = DominanceDisplay.from_table(published, points=CHOSEN).plot()
    written = [text.replace("\n", " ") for text in texts(display.ax_)]
    in_legend = legend_labels(display.figure_)
    for owner in display.segments["owner"]:
        assert (owner in written) != (owner in in_legend)
    assert "prevalence 17.7 %, cost ratio 1: Model B" in in_legend
    display.figure_.draw_without_rendering()
    assert not any_overlap(drawn_boxes(display.ax_.texts))
    assert not any_overlap(drawn_boxes(display.ax_.get_xticklabels()))
    assert inside_figure(display.figure_, display.figure_.legends[0])


def test_second_axis_says_the_cost_ratio(published):
    display = DominanceDisplay.from_table(published, prevalence=0.177).plot()
    (top,) = display.ax_.child_axes
    ticks = dict(
        zip(
            [label.get_text() for label in top.get_xticklabels()],
            top.get_xticks(),
            strict=True,
        )
    )
    # Equal costs are at a gradient of the negatives per positive.
    assert ticks["1"] == pytest.approx(0.823 / 0.177)
    assert ticks["1/10"] == pytest.approx(0.0823 / 0.177)
    assert "17.7 %" in top.get_xlabel()


@pytest.mark.parametrize("interval", ["fieller", "percentile"])
def test_intervals_of_breakpoints_are_drawn(published, interval):
    table = with_uncertainty(published)
    factor = {"fieller": 2, "percentile": 1.5}[interval]
    display = DominanceDisplay.from_table(table, interval=interval)
    np.testing.assert_allclose(display.breakpoints["low"], np.divide(SLOPES, factor))
    display.plot()
    below = [
        line.get_xdata()
        for line in display.ax_.lines
        if len(line.get_xdata()) == 2 and line.get_ydata()[0] < 0
    ]
    assert len(below) == 6
    expected = [(m / factor, m * factor) for m in SLOPES]
    np.testing.assert_allclose(sorted(map(tuple, below)), expected, rtol=1e-6)
    n_with = len(display.ax_.lines)
    display.plot(intervals=False)
    assert display.ax_.get_ylim() == (0, 1)
    assert len(display.ax_.lines) < n_with


def test_unbounded_intervals_reach_the_ends_with_an_arrow(published):
    table = with_uncertainty(published)
    table.breakpoints_["fieller_low"] = [0.0] * 6
    table.breakpoints_["fieller_high"] = [np.inf] * 6
    # All but what lies between two bounds.
    table.breakpoints_.loc[5, ["fieller_low", "fieller_high"]] = [14.0, 11.0]
    table.breakpoints_.loc[0, ["fieller_low", "fieller_high"]] = np.nan
    display = DominanceDisplay.from_table(table).plot()
    markers = [line.get_marker() for line in display.ax_.lines]
    assert markers.count("<") == markers.count(">") == 5
    assert markers.count("|") == 2
    left, right = display.ax_.get_xlim()
    wide = [
        tuple(line.get_xdata())
        for line in display.ax_.lines
        if len(line.get_xdata()) == 2 and line.get_ydata()[0] < 0
    ]
    assert sum(x == pytest.approx((left, right)) for x in wide) == 4
    assert sum(x == pytest.approx((left, 11.0)) for x in wide) == 1
    assert sum(x == pytest.approx((14.0, right)) for x in wide) == 1


def test_support_is_drawn_in_a_second_panel(published):
    table = with_uncertainty(published)
    display = DominanceDisplay.from_table(table, points=CHOSEN).plot()
    ax = display.support_ax_
    assert "bootstrap support" in ax.get_title()
    assert ax.get_xlim() == display.ax_.get_xlim()
    # Ten names: eight curves with their names, two thin grey ones.
    labels = legend_labels(ax)
    assert len(labels) == 9
    assert "2 others" in labels
    line = next(line for line in ax.lines if line.get_label() == "Specialist A")
    inside = table.dominance_support_.query("name == 'Specialist A'")
    inside = inside[inside["cpg"].between(*ax.get_xlim())]
    assert set(line.get_ydata()) <= set(inside["support"])
    display.figure_.draw_without_rendering()
    assert inside_figure(display.figure_, ax.get_legend())
    styles = [
        (line.get_linestyle(), line._dash_pattern[1])
        for line in ax.lines
        if line.get_label() in table.hull_["owner"].to_numpy()
    ]
    assert len({str(style) for style in styles}) == len(styles)


def test_names_without_support_are_left_out(published):
    table = with_uncertainty(published)
    support = table.dominance_support_
    readers = support["name"].str.startswith("Specialist")
    support.loc[readers, "support"] = np.nan
    ax = DominanceDisplay.from_table(table).plot().support_ax_
    labels = legend_labels(ax)
    # Seven names are left: nobody is one of the others.
    assert len(labels) == 7
    assert not any("Specialist" in label or "others" in label for label in labels)


def test_resampled_readers_are_not_in_the_legend_of_the_support():
    X, y = reader_study(n=200)
    table = DominanceTable(n_bootstrap=20, resample_readers=True, random_state=0)
    ax = DominanceDisplay.from_table(table.fit(X, y)).plot().support_ax_
    assert set(legend_labels(ax)) == {
        "model 1", "always positive", "never positive", "any model", "any reader"
    }  # fmt: skip


def test_lines_of_all_readers_are_unlike_those_of_chosen_points():
    X, y = reader_study(n=200)
    table = DominanceTable(n_bootstrap=20, random_state=0).fit(X, y)
    points = [(0.1, ratio) for ratio in (0.1, 0.2, 0.5, 1, 2, 4, 8, 16)]
    display = DominanceDisplay.from_table(table, points=points).plot()
    lines = {line.get_label(): line for line in display.support_ax_.lines}
    looks = {
        name: (line.get_marker(), str(line._unscaled_dash_pattern))
        for name, line in lines.items()
        if name.startswith(("any ", "prevalence"))
    }
    assert len(set(looks.values())) == 10
    chosen = [look for name, look in looks.items() if name.startswith("prevalence")]
    assert {marker for marker, _ in chosen} == {"None"}
    assert {looks["any model"][0], looks["any reader"][0]} == {"o", "s"}


def test_axes_given_take_the_strip_alone_or_with_the_support(published):
    display = DominanceDisplay.from_table(with_uncertainty(published))
    figure, axes = plt.subplots(2)
    display.plot(axes)
    assert display.ax_ is axes[0]
    assert display.support_ax_ is axes[1]
    figure, ax = plt.subplots()
    display.plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.support_ax_ is None
    with pytest.raises(ValueError, match="ax must hold one axes for each of the 2"):
        display.plot(plt.subplots(3)[1])


def test_frame_has_all_numbers(published):
    table = with_uncertainty(published)
    frame = DominanceDisplay.from_table(table, points=CHOSEN).frame()
    counts = frame["part"].value_counts().to_dict()
    assert counts == {"segment": 7, "breakpoint": 6, "chosen": 2, "support": 310}
    segment = frame.query("part == 'segment' and name == 'Specialist B'").iloc[0]
    assert (segment["cpg_from"], segment["cpg_to"]) == pytest.approx((0.5, 8 / 7))
    change = frame.query("name == 'Specialist A to Specialist B'").iloc[0]
    assert (change["cpg_from"], change["cpg"], change["cpg_to"]) == (0.25, 0.5, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prevalence": 1.0}, "prevalence must lie strictly between 0 and 1; got 1.0"),
        ({"prevalence": "x"}, "prevalence must lie strictly between 0 and 1; got 'x'"),
        ({"points": [(17.7, 1.0)]}, "a prevalence must lie strictly between"),
        ({"points": [(0.1, 0.0)]}, "positive and finite; got 0.0"),
        ({"points": [0.1, 0.2, 0.3]}, "must be pairs"),
        ({"points": 0.1}, "must be pairs"),
        ({"interval": "wald"}, "interval must be 'fieller' or 'percentile'"),
    ],
)
def test_strip_refuses_what_it_cannot_show(published, options, message):
    with pytest.raises(ValueError, match=message):
        DominanceDisplay.from_table(published, **options)


# RocReadersDisplay


def test_curves_are_those_of_scikit_learn():
    X, y = reader_study(n_models=2)
    table = DominanceTable().fit(X, y)
    display = RocReadersDisplay.from_table(table, X, y)
    for name, curve in display.curves.groupby("name"):
        fpr, tpr, threshold = roc_curve(y, X[name])
        np.testing.assert_array_equal(curve["fpr"], fpr)
        np.testing.assert_array_equal(curve["tpr"], tpr)
        np.testing.assert_array_equal(curve["threshold"], threshold)


def test_curves_follow_weights_and_the_positive_label():
    X, y = reader_study()
    labels = np.where(y == 1, "ill", "well")
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    table = DominanceTable(pos_label="ill").fit(X, labels, sample_weight=weight)
    display = RocReadersDisplay.from_table(table, X, labels, sample_weight=weight)
    assert auc(display.curves["fpr"], display.curves["tpr"]) == pytest.approx(
        roc_auc_score(y, X["model 1"], sample_weight=weight)
    )


def test_columns_of_an_array_are_found_by_position():
    X, y = reader_study()
    table = DominanceTable().fit(X.to_numpy(), y)
    display = RocReadersDisplay.from_table(table, X.to_numpy(), y)
    assert set(display.curves["name"]) == {"x0"}
    np.testing.assert_array_equal(display.curves["fpr"], roc_curve(y, X["model 1"])[0])
    numbered = X.set_axis(range(6), axis="columns")
    again = RocReadersDisplay.from_table(table, numbered, y)
    pd.testing.assert_frame_equal(again.curves, display.curves)
    with pytest.raises(ValueError, match=r"the 6 columns .* got shape \(500, 5\)"):
        RocReadersDisplay.from_table(table, X.to_numpy()[:, 1:], y)


def changed(X, y, weight):
    """Each of them changed in ways that leave as much as can be as it is."""
    rng = np.random.default_rng(2)
    flipped = X["reader 1"].mask(np.arange(len(y)) < 9, 1 - X["reader 1"])
    unread = X["reader 1"].mask(np.arange(len(y)) < 9)
    return {
        "other truth": (X, rng.permutation(y), weight, "y or sample_weight is"),
        "one label more": (X, np.r_[1 - y[:1], y[1:]], weight, "y or sample_weight is"),
        "other scores": (
            X.assign(**{"model 1": rng.permutation(X["model 1"])}),
            y,
            weight,
            "model 'model 1' at the threshold",
        ),
        "other calls": (X.assign(**{"reader 1": flipped}), y, weight, "'reader 1' has"),
        "fewer reads": (X.assign(**{"reader 1": unread}), y, weight, "'reader 1' read"),
        "no weights": (X, y, None, "sample_weight is lacking"),
        "other weights": (X, y, rng.permutation(weight), "y or sample_weight is"),
        "a part": (X[:-5], y[:-5], weight[:-5], "y or sample_weight is"),
        "other lengths": (X[:-5], y, weight, "got 495 for 500"),
    }


@pytest.mark.parametrize("how", list(changed(*reader_study(), np.ones(500))))
@pytest.mark.parametrize("as_array", [False, True])
def test_other_cases_than_those_of_the_table_are_refused(how, as_array):
    X, y = reader_study()
    X.loc[::7, "reader 2"] = np.nan
    weight = np.random.default_rng(1).integers(1, 9, len(y)) / 3
    table = DominanceTable().fit(X, y, sample_weight=weight)
    RocReadersDisplay.from_table(table, X, y, sample_weight=weight)
    other, labels, weights, message = changed(X, y, weight)[how]
    if as_array:
        other = other.to_numpy()
    with pytest.raises(ValueError, match=message):
        RocReadersDisplay.from_table(table, other, labels, sample_weight=weights)


def test_cases_of_a_table_with_text_and_ratings_are_recognised():
    X, y = reader_study()
    labels = np.where(y == 1, "ill", "well")
    X["reader 1"] = np.where(X["reader 1"] == 1, "ill", "well")
    X["rating"] = np.digitize(X["model 1"], [0, 1, 2]) + 1
    table = DominanceTable(
        pos_label="ill",
        readers={f"reader {k}": None for k in range(1, 6)} | {"rating": 3},
    ).fit(X, labels)
    RocReadersDisplay.from_table(table, X, labels)
    # The columns of the models are enough.
    RocReadersDisplay.from_table(table, X[["model 1"]], list(labels))
    with pytest.raises(ValueError, match="reader 'rating' has"):
        RocReadersDisplay.from_table(table, X.assign(rating=X["rating"] - 1), labels)
    with pytest.raises(ValueError, match=r"has 0 positive .* cases, and the table"):
        RocReadersDisplay.from_table(table, X[["model 1"]], y)


def test_scores_of_a_constant_model_are_checked_too():
    X, y = reader_study(n_readers=0)
    table = DominanceTable(readers=[]).fit(X.assign(**{"model 1": 1.0}), y)
    with pytest.raises(ValueError, match="none in the table"):
        RocReadersDisplay.from_table(table, X, y)
    with pytest.raises(ValueError, match="NaN"):
        RocReadersDisplay.from_table(table, X.where(X["model 1"] > 0), y)


def test_long_curves_are_thinned():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40_000)
    X = pd.DataFrame({"model": y + 2 * rng.normal(size=len(y))})
    display = RocReadersDisplay.from_table(DominanceTable().fit(X, y), X, y)
    curve = display.curves
    assert len(curve) == 2000
    assert curve[["fpr", "tpr"]].iloc[[0, -1]].to_numpy().tolist() == [[0, 0], [1, 1]]
    full = roc_curve(y, X["model"])
    away = curve["tpr"] - np.interp(curve["fpr"], full[0], full[1])
    assert np.abs(away).max() < 1e-3


def test_reader_points_and_their_mean_are_counted_by_hand():
    X, y = reader_study()
    table = DominanceTable().fit(X, y)
    display = RocReadersDisplay.from_table(table, X, y)
    for row in display.readers.to_dict("records"):
        calls = X[row["name"]].to_numpy()
        assert row["TP"] == ((calls == 1) & (y == 1)).sum()
        assert row["FP"] == ((calls == 1) & (y == 0)).sum()
        assert (row["positives"], row["negatives"]) == (y.sum(), (1 - y).sum())
    calls = X.filter(like="reader").to_numpy()
    expected = calls[y == 0].mean(), calls[y == 1].mean()
    assert display.mean_reader == pytest.approx(expected)


def test_hull_is_that_of_the_table_and_no_point_lies_above_it():
    X, y = reader_study(n_models=2, seed=3)
    table = DominanceTable().fit(X, y)
    display = RocReadersDisplay.from_table(table, X, y)
    hull = display.hull
    np.testing.assert_array_equal(hull["tpr"], table.hull_["sensitivity"][::-1])
    # Left and right of the vertices the hull goes straight down and level.
    x, height = [0, *hull["fpr"], 1], [hull["tpr"].iloc[0], *hull["tpr"], 1]
    for points in (display.curves, display.readers):
        above = points["tpr"] - np.interp(points["fpr"], x, height)
        assert above.max() < 1e-12


def test_iso_cost_line_touches_the_winning_vertex_and_no_more(published):
    display = RocReadersDisplay.from_table(published, points=CHOSEN).plot()
    labels = legend_labels(display.figure_)
    for i, row in enumerate(display.chosen.itertuples()):
        winner = PUBLISHED.set_index("name").loc[row.owner]
        assert (row.tpr, 1 - row.fpr) == pytest.approx(tuple(winner.iloc[1:]))
        black = [
            line
            for line in display.ax_.lines
            if line.get_color() == "black" and len(line.get_xdata()) == 2
        ]
        x, y = black[i].get_data()
        assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(row.cpg)
        assert row.tpr == pytest.approx(y[0] + row.cpg * (row.fpr - x[0]))
        assert min(x[0], y[0]) >= 0
        assert max(x[1], y[1]) <= 1 + 1e-12
        above = PUBLISHED["sensitivity"] - y[0]
        above -= row.cpg * (1 - PUBLISHED["specificity"] - x[0])
        assert above.max() < 1e-12
    assert "equal cost at prevalence 17.7 %, cost ratio 1" in labels


def test_legend_has_counts_the_mean_and_nothing_twice():
    X, y = reader_study()
    table = DominanceTable().fit(X, y)
    display = RocReadersDisplay.from_table(table, X, y).plot()
    labels = legend_labels(display.figure_)
    assert len(set(labels)) == len(labels)
    assert "mean of the readers (misleading)" in labels
    assert "model 1" in labels
    for row in display.readers.to_dict("records"):
        counts = f"{row['TP']}/{row['positives']}, {row['FP']}/{row['negatives']}"
        assert f"{row['name']}: {counts}" in labels
    display.figure_.draw_without_rendering()
    legend = display.figure_.legends[0]
    assert inside_figure(display.figure_, legend)
    assert not legend.get_window_extent().overlaps(display.ax_.get_window_extent())


def test_owners_in_the_roc_plane_differ_without_colour(published):
    display = RocReadersDisplay.from_table(published).plot()
    broad = [line for line in display.ax_.lines if line.get_linewidth() == 5]
    assert len(broad) == 7
    patterns = {str(line._unscaled_dash_pattern) for line in broad}
    assert len(patterns) == 7
    markers = [
        line.get_marker()
        for line in display.ax_.lines
        if line.get_linestyle() == "None" and line.get_marker() != "+"
    ]
    assert len(set(markers)) == 3


def test_both_displays_give_an_owner_the_same_colour(published):
    roc = RocReadersDisplay.from_table(published).plot()
    broad = [line for line in roc.ax_.lines if line.get_linewidth() == 5][::-1]
    strip = DominanceDisplay.from_table(published).plot()
    bars = [bar for container in strip.ax_.containers for bar in container]
    for line, bar in list(zip(broad, bars, strict=True))[1:-1]:
        assert to_hex(line.get_color()) == to_hex(bar.get_facecolor()[:3])


def test_published_points_have_the_models_own_hulls(published):
    display = RocReadersDisplay.from_table(published)
    curve = display.curves.query("name == 'Model A'")
    assert curve["tpr"].tolist() == [0.0, 0.93, 1.0]
    assert curve["fpr"].tolist() == pytest.approx([0.0, 0.4, 1.0])
    assert display.readers["TP"].isna().all()
    display.plot()
    assert "Specialist A" in legend_labels(display.figure_)
    assert "own hull" in display.figure_.legends[0].get_title().get_text()


def test_own_hull_leaves_out_points_below_it():
    points = pd.DataFrame(
        {
            "name": ["m", "m", "m", "r"],
            "TP": [5, 6, 9, 7],
            "FN": [5, 4, 1, 3],
            "FP": [1, 3, 4, 5],
            "TN": [9, 7, 6, 5],
        }
    )
    table = DominanceTable.from_operating_points(points)
    display = RocReadersDisplay.from_table(table)
    assert display.curves["tpr"].tolist() == [0, 0.5, 0.9, 1]
    labels = legend_labels(display.plot().figure_)
    assert "r: 7/10, 5/10" in labels


def test_coinciding_readers_share_a_marker_and_their_counts():
    points = pd.DataFrame(
        {
            "name": ["a", "b", "c", "d"],
            "TP": [8, 16, 5, 5],
            "FN": [2, 4, 5, 5],
            "FP": [1, 2, 3, 3],
            "TN": [9, 18, 7, 7],
        }
    )
    table = DominanceTable.from_operating_points(points)
    labels = legend_labels(RocReadersDisplay.from_table(table).plot().figure_)
    assert "a = b: 8/10, 1/10; 16/20, 2/20" in labels
    assert "c = d: 5/10, 3/10" in labels


def test_reader_on_a_models_vertex_shares_its_entry():
    y = np.repeat([0, 1], 10)
    score = np.linspace(0, 1, 20)
    score[[9, 10]] = score[[10, 9]]
    X = pd.DataFrame({"model": score, "reader": (score >= score[10]).astype(int)})
    table = DominanceTable().fit(X, y)
    assert "model = reader" in table.hull_["owner"].to_numpy()
    labels = legend_labels(RocReadersDisplay.from_table(table, X, y).plot().figure_)
    assert "model = reader: 10/10, 1/10" in labels
    assert "model" in labels
    assert "reader" not in labels


def test_part_of_the_plane():
    X, y = reader_study()
    display = RocReadersDisplay.from_table(DominanceTable().fit(X, y), X, y)
    ax = display.plot(max_fpr=0.2, min_tpr=0.5).ax_
    assert ax.get_xlim() == pytest.approx((-0.002, 0.202))
    assert ax.get_ylim() == pytest.approx((0.495, 1.005))
    for line in ax.lines:
        if line.get_linestyle() == "None" and not line.get_clip_on():
            assert line.get_xdata()[0] <= 0.202
    for options in ({"max_fpr": 0.0}, {"max_fpr": 1.1}, {"min_tpr": 1.0}):
        with pytest.raises(ValueError, match="must lie in"):
            display.plot(**options)


def test_roc_display_draws_on_axes_given():
    X, y = reader_study()
    figure, ax = plt.subplots()
    display = RocReadersDisplay.from_table(DominanceTable().fit(X, y)).plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.get_legend() is not None


def test_roc_frame_has_all_numbers():
    X, y = reader_study()
    table = DominanceTable().fit(X, y)
    display = RocReadersDisplay.from_table(table, X, y, points=[(0.1, 1)])
    frame = display.frame()
    counts = frame["part"].value_counts()
    assert counts["curve"] == len(display.curves)
    assert counts["hull"] == len(table.hull_)
    assert (counts["reader"], counts["mean of readers"], counts["chosen"]) == (5, 1, 1)


def test_roc_display_refuses_what_it_cannot_show(published):
    X, y = reader_study()
    table = DominanceTable().fit(X, y)
    with pytest.raises(ValueError, match="X and y go together"):
        RocReadersDisplay.from_table(table, X)
    with pytest.raises(ValueError, match="leave X and y out"):
        RocReadersDisplay.from_table(published, X, y)
    with pytest.raises(ValueError, match="lacks the column of the model 'model 1'"):
        RocReadersDisplay.from_table(table, X.drop(columns="model 1"), y)
    for display in (RocReadersDisplay, DominanceDisplay):
        with pytest.raises(ValueError, match="must be a fitted DominanceTable"):
            display.from_table(DominanceTable())


# Both


@cache
def studies():
    X, y = reader_study(n_readers=43, n_models=3)
    X.loc[::7, "reader 5"] = np.nan
    constant = X[["model 1", "reader 1"]].assign(flat=0.5)
    only_constant = pd.DataFrame({"flat": np.full(len(y), 0.5)})
    perfect = pd.DataFrame({"reader": y})
    return {
        "43 readers": (DominanceTable(), X, y),
        "readers only": (DominanceTable(), X.filter(like="reader"), y),
        "one model": (DominanceTable(), X[["model 1"]], y),
        "one reader": (DominanceTable(), X[["reader 1"]], y),
        "20 models": (DominanceTable(), reader_study(0, 20)[0], y),
        "constant score": (DominanceTable(readers=["reader 1"]), constant, y),
        "only a constant score": (DominanceTable(readers=[]), only_constant, y),
        "perfect reader": (DominanceTable(), perfect, y),
    }


@pytest.mark.parametrize("case", list(studies()))
def test_every_kind_of_study_is_drawn(case):
    table, X, y = studies()[case]
    table.fit(X, y)
    strip = DominanceDisplay.from_table(table, prevalence=0.1, points=[(0.1, 0.5)])
    strip.plot()
    assert strip.segments["cpg_from"].iloc[0] == 0
    assert np.isposinf(strip.segments["cpg_to"].iloc[-1])
    roc = RocReadersDisplay.from_table(table, X, y, points=[(0.1, 0.5)]).plot()
    labels = legend_labels(roc.figure_)
    assert len(labels) <= 25
    for display in (strip, roc):
        display.figure_.draw_without_rendering()
        for legend in display.figure_.legends:
            assert inside_figure(display.figure_, legend)
        assert not any_overlap(drawn_boxes(display.ax_.get_xticklabels()))
    assert not any_overlap(drawn_boxes(strip.ax_.texts))
    RocReadersDisplay.from_table(table).plot()
    names = {
        name for name in X if not name.startswith("reader") and case != "one reader"
    }
    assert set(roc.curves["name"]) == names


def test_43_readers_have_few_entries():
    table, X, y = studies()["43 readers"]
    labels = legend_labels(
        RocReadersDisplay.from_table(table.fit(X, y), X, y).plot().figure_
    )
    (others,) = [label for label in labels if label.endswith("other readers")]
    named = [label for label in labels if label.startswith("reader ")]
    assert int(others.split()[0]) + len(named) == 43


def test_many_owners_all_differ():
    # Points on a circle: each is best somewhere.
    angle = np.linspace(0.05, 1.5, 40)
    points = pd.DataFrame(
        {
            "name": [f"r{i}" for i in range(40)],
            "sensitivity": np.sin(angle).round(6),
            "specificity": np.cos(angle).round(6),
        }
    )
    table = DominanceTable.from_operating_points(points)
    display = DominanceDisplay.from_table(table).plot()
    assert len(display.segments) == 42
    bars = [bar for container in display.ax_.containers for bar in container]
    looks = {(bar.get_facecolor(), bar.get_hatch()) for bar in bars}
    assert len(looks) == 42
    display.figure_.draw_without_rendering()
    assert not any_overlap(drawn_boxes(display.ax_.get_xticklabels()))


def test_no_matplotlib_until_something_is_drawn():
    code = (
        "import sys, pandas as pd\n"
        "from skcalfair.displays import DominanceDisplay, RocReadersDisplay\n"
        "from skcalfair.dominance import DominanceTable\n"
        "table = DominanceTable.from_operating_points(pd.DataFrame(\n"
        "    {'name': ['a'], 'sensitivity': [0.8], 'specificity': [0.9]}))\n"
        "DominanceDisplay.from_table(table).frame()\n"
        "RocReadersDisplay.from_table(table).frame()\n"
        "assert not any(name.startswith('matplotlib') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
