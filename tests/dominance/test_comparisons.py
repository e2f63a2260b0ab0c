"""The three common comparisons, and where each goes wrong."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from skcalfair.datasets import fetch_ecg_readers
from skcalfair.dominance import (
    DominanceTable,
    compare_mean_reader,
    matched_operating_point,
    reader_hull_auc,
)
from skcalfair.dominance._paired import paired_difference_interval

COMPARISONS = [compare_mean_reader, reader_hull_auc, matched_operating_point]


def calls_at(truth, sensitivity, specificity):
    """Calls with exactly these rates: the first cases of each class are positive."""
    called = np.zeros(len(truth))
    for label, rate in ((1, sensitivity), (0, 1 - specificity)):
        rows = np.flatnonzero(truth == label)
        called[rows[: round(rate * len(rows))]] = 1
    return called


def study_of(points, n=1000):
    """Truth and scores of a model with just these operating points (FPR, TPR)."""
    truth, score = [], []
    steps = pairwise([(0.0, 0.0), *points, (1.0, 1.0)])
    for level, ((x0, y0), (x1, y1)) in enumerate(steps):
        counts = round((x1 - x0) * n), round((y1 - y0) * n)
        truth.append(np.repeat([0, 1], counts))
        score.append(np.full(sum(counts), -level))
    return np.concatenate(truth), np.concatenate(score)


def random_study(seed, n=60, weighted=False):
    rng = np.random.default_rng(seed)
    truth = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    score = np.round(rng.normal(truth, 1.0), int(rng.integers(0, 3)))
    calls = (rng.normal(truth[:, None], 1.0, (n, 3)) > [0.1, 0.6, 1.0]).astype(float)
    weight = rng.integers(1, 4, n) * 0.3 if weighted else None
    return truth, score, calls, weight


def brute_height(truth, score, fpr, weight=None):
    """Height of the drawn curve, by going through its segments."""
    x, y, _ = roc_curve(truth, score, sample_weight=weight, drop_intermediate=False)
    heights = [
        y0 + (y1 - y0) * (fpr - x0) / (x1 - x0)
        for x0, x1, y0, y1 in zip(x[:-1], x[1:], y[:-1], y[1:], strict=True)
        if x0 - 1e-12 <= fpr <= x1 + 1e-12 and x1 > x0
    ]
    heights += [b for a, b in zip(x, y, strict=True) if abs(a - fpr) < 1e-12]
    return max(heights)


class TestHumansBetterEverywhere:
    """Each reader is above the model's curve; the mean reader lies under it."""

    def setup_method(self):
        # A curve with an elbow; one reader on each side of it.
        self.truth, self.score = study_of([(0.05, 0.6), (0.2, 0.9), (0.6, 0.97)])
        points = {"careful": (0.65, 0.96), "usual": (0.93, 0.81), "bold": (0.99, 0.4)}
        self.calls = pd.DataFrame(
            {name: calls_at(self.truth, *point) for name, point in points.items()}
        )
        data = self.calls.assign(model=self.score)
        self.table = DominanceTable(readers=list(self.calls)).fit(data, self.truth)

    def test_the_mean_reader_loses(self):
        found = compare_mean_reader(self.truth, self.score, self.calls)
        assert found.readers_above == ("careful", "usual", "bold")
        assert found.is_under_curve
        assert found.mean_sensitivity < found.model_sensitivity - 0.03
        words = " ".join(found.summary().split())
        assert "lies under the ROC curve of the model" in words
        assert "Above the curve: careful, usual and bold." in words
        assert "3 decide best at some CPG: bold, usual and careful." in words

    def test_the_dominance_table_is_right(self):
        found = compare_mean_reader(self.truth, self.score, self.calls)
        assert found.readers_best == ("bold", "usual", "careful")
        pd.testing.assert_frame_equal(found.table, self.table.table_)
        # From where the bold one starts to where the careful one ends, a reader is
        # best: the model has only the ends of the axis, where no reader decides.
        owners = self.table.table_["owner"].tolist()
        first, last = owners.index("bold"), owners.index("careful")
        assert set(owners[first : last + 1]) == {"careful", "usual", "bold"}
        at = self.table.at(prevalence=0.5, cost_ratio=1.0)
        assert at.winners == ("usual",)


class TestAreaOfReadersGoesWrong:
    def setup_method(self):
        # Readers work near one point, and are better there.
        self.truth, self.score = study_of(
            [(0.02, 0.5), (0.1, 0.72), (0.12, 0.74), (0.3, 0.93), (0.5, 1.0)]
        )
        points = {"a": (0.78, 0.9), "b": (0.81, 0.88), "c": (0.83, 0.86)}
        self.calls = pd.DataFrame(
            {name: calls_at(self.truth, *point) for name, point in points.items()}
        )

    def test_the_model_has_the_greater_area(self):
        found = reader_hull_auc(self.truth, self.score, self.calls)
        assert found.model_auc > found.reader_auc + 0.02
        assert found.share_outside > 0.9
        # Where the readers are, theirs is the greater one, even against the hull.
        assert found.reader_area_inside > found.model_area_inside
        assert found.reader_area_inside > found.model_hull_area_inside

    def test_the_dominance_table_is_right(self):
        found = reader_hull_auc(self.truth, self.score, self.calls)
        assert set(found.readers_best) == {"a", "b", "c"}
        model = {"model": self.score} | dict(self.calls)
        table = DominanceTable(readers=["a", "b", "c"]).fit(
            pd.DataFrame(model), self.truth
        )
        assert set(table.at(0.5, 1.0).winners) <= {"a", "b", "c"}


class TestMatchingGoesWrong:
    def setup_method(self):
        # The model is the better one at 90 % specificity and at 60 %, but not between.
        self.truth, self.score = study_of([(0.1, 0.7), (0.24, 0.73), (0.4, 0.97)])
        self.calls = pd.DataFrame({"reader": calls_at(self.truth, 0.9, 0.76)})

    @pytest.mark.parametrize("target", [{"specificity": 0.9}, {"sensitivity": 0.95}])
    def test_a_stated_point_says_nothing(self, target):
        found = matched_operating_point(self.truth, self.score, self.calls, **target)
        assert found.readers["reading"].tolist() == ["trade-off"]

    def test_the_answer_depends_on_the_point(self):
        at_own = matched_operating_point(self.truth, self.score, self.calls)
        assert at_own.readers["reading"].tolist() == ["reader"]
        assert at_own.target is None
        assert at_own.readers["sensitivity_high"].lt(0).all()
        assert '"reader"' in at_own.summary()
        assert '"chance"' not in at_own.summary()

    def test_the_dominance_table_is_right(self):
        found = matched_operating_point(
            self.truth, self.score, self.calls, specificity=0.9
        )
        assert found.readers_best == ("reader",)
        # At equal costs of all errors the reader is best, and the model at others.
        table = DominanceTable(readers=["reader"]).fit(
            self.calls.assign(model=self.score), self.truth
        )
        assert table.at(0.5, 1.0).winners == ("reader",)
        assert table.at(0.5, 4.0).winners == ("model",)
        assert table.at(0.5, 0.2).winners == ("model",)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_mean_reader_by_hand(seed, weighted):
    truth, score, calls, weight = random_study(seed, weighted=weighted)
    try:
        found = compare_mean_reader(truth, score, calls, sample_weight=weight)
    except ValueError:
        assert len(np.unique(truth)) < 2
        return
    w = np.ones(len(truth)) if weight is None else weight
    sens = [np.average(c[truth == 1], weights=w[truth == 1]) for c in calls.T]
    spec = [1 - np.average(c[truth == 0], weights=w[truth == 0]) for c in calls.T]
    assert_allclose(found.readers["sensitivity"], sens)
    assert_allclose(found.readers["specificity"], spec)
    assert_allclose(
        [found.mean_sensitivity, found.mean_specificity], [np.mean(sens), np.mean(spec)]
    )
    heights = [brute_height(truth, score, 1 - s, weight) for s in spec]
    assert_allclose(found.readers["model_sensitivity"], heights, atol=1e-8)
    mean = brute_height(truth, score, 1 - np.mean(spec), weight)
    assert_allclose(found.model_sensitivity, mean, atol=1e-8)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_areas_by_hand(seed, weighted):
    truth, score, calls, weight = random_study(seed, weighted=weighted)
    found = reader_hull_auc(truth, score, calls, sample_weight=weight)
    assert_allclose(found.model_auc, roc_auc_score(truth, score, sample_weight=weight))
    points = list(
        zip(1 - found.readers["specificity"], found.readers["sensitivity"], strict=True)
    )
    grid = np.linspace(0, 1, 1001)
    middle = (grid[1:] + grid[:-1]) / 2

    def brute_hull(points):
        """The greatest mixture of two points around each rate."""
        points = [(0.0, 0.0), *points, (1.0, 1.0)]
        best = np.zeros(len(middle))
        for x0, y0 in points:
            for x1, y1 in points:
                if x0 < x1:
                    inside = (middle >= x0) & (middle <= x1)
                    on = y0 + (y1 - y0) * (middle - x0) / (x1 - x0)
                    best = np.where(inside, np.maximum(best, on), best)
        return best

    hull = brute_hull(points)
    inside = (middle > found.fpr_low) & (middle < found.fpr_high)
    assert_allclose(found.reader_auc, hull.mean(), atol=2e-3)
    assert_allclose(found.reader_area_inside, hull[inside].sum() / 1000, atol=2e-3)
    assert_allclose(
        found.share_outside, 1 - found.reader_area_inside / found.reader_auc
    )
    x, y, _ = roc_curve(truth, score, sample_weight=weight)
    model = brute_hull(list(zip(x, y, strict=True)))
    assert_allclose(found.model_hull_auc, model.mean(), atol=2e-3)
    assert_allclose(found.model_hull_area_inside, model[inside].sum() / 1000, atol=2e-3)
    drawn = [brute_height(truth, score, m, weight) for m in middle[::20]]
    part = np.where(inside[::20], drawn, 0).mean()
    assert_allclose(found.model_area_inside, part, atol=0.03)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["own", "sens", "spec"]))
def test_matched_points_by_hand(seed, how):
    truth, score, calls, _ = random_study(seed)
    rng = np.random.default_rng(seed)
    calls[rng.random(calls.shape) < 0.2] = np.nan
    calls[:2] = 1.0
    target = float(np.round(rng.random(), 2))
    stated = {
        "own": {},
        "sens": {"sensitivity": target},
        "spec": {"specificity": target},
    }
    found = matched_operating_point(truth, score, calls, **stated[how])
    for row, own in zip(found.readers.itertuples(), calls.T, strict=True):
        read = ~np.isnan(own)
        t, s, c = truth[read], score[read], own[read]
        assert row.n_read == read.sum()
        assert_allclose(row.sensitivity, c[t == 1].mean())
        assert_allclose(row.specificity, 1 - c[t == 0].mean())
        options = []
        for threshold in [*np.unique(s), np.inf]:
            sens = (s[t == 1] >= threshold).mean()
            spec = (s[t == 0] < threshold).mean()
            held = {"own": row.specificity, "sens": target, "spec": target}[how]
            if how == "sens" and sens >= held - 1e-12:
                options.append((spec, sens))
            if how != "sens" and spec >= held - 1e-12:
                options.append((sens, spec))
        best = max(options)
        if how == "sens":
            best = best[::-1]
        assert_allclose((row.model_sensitivity, row.model_specificity), best)
        assert_allclose((s[t == 1] >= row.threshold).mean(), best[0])
        assert row.sensitivity_low <= row.sensitivity_difference + 1e-12
        assert row.sensitivity_high >= row.sensitivity_difference - 1e-12


class TestPairedInterval:
    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            # Method 10 in the tables of Newcombe (1998).
            ((36, 12, 2, 0), (0.0569, 0.3404)),
            ((36, 14, 0, 0), (0.1528, 0.4167)),
            ((2, 97, 1, 0), (0.8721, 0.9854)),
        ],
    )
    def test_published_intervals(self, cells, expected):
        both, first, second, neither = cells
        a = np.repeat([True, True, False, False], [both, first, second, neither])
        b = np.repeat([True, False, True, False], [both, first, second, neither])
        assert_allclose(paired_difference_interval(a, b, 0.95), expected, atol=5e-5)
        low, high = paired_difference_interval(b, a, 0.95)
        assert_allclose((-high, -low), expected, atol=5e-5)

    def test_coverage(self):
        rng = np.random.default_rng(0)
        # P(U + 0.3 Z > 0.3) - P(U > 0.3) for U uniform on (0, 1) and Z normal.
        truth = norm.cdf((np.linspace(0, 1, 10_001) - 0.3) / 0.3).mean() - 0.7
        inside = 0
        for _ in range(400):
            both = rng.random(60)
            a, b = both + rng.normal(0, 0.3, 60) > 0.3, both > 0.3
            low, high = paired_difference_interval(a, b, 0.9)
            inside += low <= truth <= high
        assert 0.85 < inside / 400 < 0.96

    def test_reading_allows_for_chance(self):
        # +.19 in sensitivity, -.06 to .43: no difference is shown.
        truth = np.repeat([0, 1], [40, 16])
        model, own = np.zeros(56), np.zeros(56)
        model[40:52], own[40:46], own[52:55] = 1, 1, 1
        found = matched_operating_point(truth, model, own[:, None])
        row = found.readers.iloc[0]
        assert row["sensitivity_difference"] == pytest.approx(0.1875)
        assert row["sensitivity_low"] < 0 < row["sensitivity_high"]
        assert row["reading"] == "chance"
        assert "no difference is shown" in found.summary()
        # The same rates of five times as many cases.
        many = (np.repeat(a, 5) for a in (truth, model, own))
        truth, model, own = many
        found = matched_operating_point(truth, model, own[:, None]).readers.iloc[0]
        assert found["sensitivity_low"] > 0
        assert found["reading"] == "model"

    @settings(max_examples=25)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.9, 0.99]))
    def test_readings_follow_from_the_intervals(self, seed, level):
        truth, score, calls, _ = random_study(seed)
        found = matched_operating_point(
            truth, score, calls, specificity=0.7, confidence_level=level
        )
        for row in found.readers.to_dict("records"):
            gaps = [row["sensitivity_difference"], row["specificity_difference"]]
            shown = any(
                row[f"{rate}_low"] > 0 or row[f"{rate}_high"] < 0
                for rate in ("sensitivity", "specificity")
            )
            if np.allclose(gaps, 0):
                assert row["reading"] == "equal"
            elif not shown:
                assert row["reading"] == "chance"
            elif min(gaps) < -1e-9 and max(gaps) > 1e-9:
                assert row["reading"] == "trade-off"
            else:
                assert row["reading"] == ("model" if max(gaps) > 1e-9 else "reader")

    def test_weights_have_no_interval(self):
        truth, score, calls, weight = random_study(3, weighted=True)
        found = matched_operating_point(truth, score, calls, sample_weight=weight)
        assert found.readers.filter(regex="_(low|high)$").isna().all(axis=None)
        assert set(found.readers["reading"]) <= {"untested", "equal"}
        assert "with weights there is no interval" in found.summary()


@pytest.mark.parametrize("compare", COMPARISONS)
class TestInput:
    def test_names_labels_and_gaps(self, compare):
        truth, score, calls, _ = random_study(1)
        expected = compare(truth, score, calls)
        assert expected.readers["reader"].tolist() == ["reader0", "reader1", "reader2"]
        names = ["x", "y", "z"]
        text = pd.DataFrame(np.where(calls == 1, "yes", "no"), columns=names)
        found = compare(
            np.where(truth == 1, "yes", "no"), list(score), text, pos_label="yes"
        )
        assert found.readers["reader"].tolist() == names
        other = compare(1 - truth, score, 1 - calls, pos_label=0)
        for result in (found, other):
            pd.testing.assert_frame_equal(
                result.readers.drop(columns="reader"),
                expected.readers.drop(columns="reader"),
            )

    def test_positive_class_is_not_guessed(self, compare):
        truth, score, calls, _ = random_study(1)
        labels = np.where(truth == 1, "malignant", "zzz")
        with pytest.raises(ValueError, match=r"y_true takes values in .* pos_label"):
            compare(labels, score, calls)
        with pytest.raises(ValueError, match=r"pos_label='yes' is not among"):
            compare(labels, score, calls, pos_label="yes")
        with pytest.raises(ValueError, match="pos_label is not specified"):
            compare(truth + 1, score, calls)
        expected = compare(truth, score, calls).readers
        for y in (truth == 1, 2 * truth - 1):
            pd.testing.assert_frame_equal(compare(y, score, calls).readers, expected)
        found = compare(labels, score, calls, pos_label="malignant").readers
        pd.testing.assert_frame_equal(found, expected)

    def test_ratings_are_to_be_turned_into_calls(self, compare):
        truth, score, calls, _ = random_study(1)
        ratings = pd.DataFrame({"doctor": 2 * calls[:, 0] + calls[:, 1] + 1})
        with pytest.raises(ValueError, match="turn ratings into calls") as caught:
            compare(truth, score, ratings)
        assert "column 'doctor' of reader_calls" in str(caught.value)
        assert "readers=" not in str(caught.value)
        assert compare(truth, score, ratings >= 3).readers_best is not None

    def test_missing_scores_are_found_in_the_rows_given(self, compare):
        truth, score, calls, _ = random_study(1)
        weight = np.r_[np.zeros(3), np.ones(57)]
        score = np.where(np.isin(np.arange(60), [1, 5]), np.nan, score)
        with pytest.raises(ValueError, match=r"y_score contains NaN .* at row 5"):
            compare(truth, score, calls, sample_weight=weight)
        weight[5] = 0
        compare(truth, score, calls, sample_weight=weight)

    def test_name_of_the_model(self, compare):
        truth, score, calls, _ = random_study(1)
        series = pd.Series(score, name="network")
        for scores, name in (
            (score, "model"),
            (series, "network"),
            (series.rename("reader1"), "model"),
            (series.rename(None), "model"),
            (series.rename(7), "model"),
        ):
            found = compare(truth, scores, calls)
            assert found.model == name
            owners = {owner for owners in found.table["owners"] for owner in owners}
            assert name in owners
        people = pd.DataFrame({"model": calls[:, 0]})
        assert compare(truth, series, people).readers["reader"].tolist() == ["model"]

    def test_words(self, compare):
        truth, score, calls, _ = random_study(1)
        names = ["doctor", "a nurse whose name is too long for any table", "x"]
        found = compare(truth, score, pd.DataFrame(calls, columns=names))
        assert "\n" not in repr(found)
        assert len(repr(found)) < 300
        text = found.summary()
        assert max(len(line) for line in text.splitlines()) <= 92
        words = " ".join(text.split())
        assert "What this gets wrong" in words
        assert "What the dominance table says" in words
        for owner in found.table["owners"]:
            assert owner[0][:20] in words
        n = len(found.readers_best)
        assert f"Of 3 readers, {n} decide" in words
        named = compare(truth, pd.Series(score, name="net"), calls).summary()
        assert "he model net" in " ".join(named.split())

    def test_words_where_no_reader_is_best(self, compare):
        truth = np.repeat([0, 1], 10)
        words = " ".join(compare(truth, truth, 1 - truth[:, None]).summary().split())
        assert "Of 1 reader, 0 decide best at any CPG." in words

    def test_words_of_many_readers_are_few(self, compare):
        truth = np.repeat([0, 1], 10)
        calls = np.repeat(truth[:, None], 43, axis=1)
        words = compare(truth, truth, calls).summary()
        assert len(words.splitlines()) < 60
        assert "31 more" in words

    def test_cases_of_no_weight_do_not_count(self, compare):
        truth, score, calls, _ = random_study(2)
        weight = np.r_[np.ones(40), np.zeros(20)]
        found = compare(truth, score, calls, sample_weight=weight)
        expected = compare(truth[:40], score[:40], calls[:40])
        shown = ["reader", "n_read", "sensitivity", "specificity"]
        pd.testing.assert_frame_equal(found.readers[shown], expected.readers[shown])
        pd.testing.assert_frame_equal(found.table, expected.table)

    def test_constant_score(self, compare):
        truth, _, calls, _ = random_study(2)
        found = compare(truth, np.ones(60), calls)
        assert set(found.readers_best)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"y_true": np.zeros(60)}, "y_true must hold two classes"),
            ({"y_true": np.zeros(59)}, "y_score"),
            ({"y_score": [np.nan] * 60}, "y_score contains NaN .missing. at row 0"),
            ({"y_score": [np.inf] * 60}, "y_score contains infinity at row 0"),
            ({"y_score": np.ones((60, 2))}, "y_score must be one-dimensional"),
            ({"y_score": ["a"] * 60}, "y_score must be numeric"),
            ({"reader_calls": np.ones(60)}, "a column for each"),
            ({"reader_calls": np.ones((60, 0))}, "at least one reader"),
            ({"reader_calls": np.ones((59, 1))}, "got 59 for 60 cases"),
            ({"reader_calls": np.full((60, 1), 0.5)}, "does not hold calls of two"),
            ({"reader_calls": np.full((60, 1), np.nan)}, "read no case"),
            (
                {"reader_calls": pd.DataFrame({"model": np.ones(60)})},
                "a reader is named 'model'",
            ),
            (
                {"reader_calls": pd.DataFrame(np.ones((60, 2)), columns=["a", "a"])},
                "column 'a' twice",
            ),
            (
                {"reader_calls": pd.DataFrame({"r": ["yes"] * 60})},
                "column 'r' of reader_calls holds text that is no label of y_true",
            ),
            (
                {"reader_calls": np.where(np.arange(60) == 7, np.inf, 1)[:, None]},
                "column 'reader0' of reader_calls contains infinity at row 7",
            ),
            (
                {"reader_calls": pd.DataFrame({"never positive": np.ones(60)})},
                "trivial strategy",
            ),
            ({"sample_weight": -np.ones(60)}, "must not be negative"),
        ],
    )
    def test_refused(self, compare, change, message):
        truth, score, calls, _ = random_study(4)
        given = {"y_true": truth, "y_score": score, "reader_calls": calls} | change
        with pytest.raises(ValueError, match=message):
            compare(**given)


def test_both_rates_are_refused():
    with pytest.raises(ValueError, match="not both"):
        matched_operating_point(
            [0, 1], [0, 1], [[0], [1]], sensitivity=0.9, specificity=0.9
        )
    with pytest.raises(ValueError, match="specificity"):
        matched_operating_point([0, 1], [0, 1], [[0], [1]], specificity=90)


def test_ecg_readers(data_home):
    ecg = fetch_ecg_readers(data_home, download_if_missing=False)
    name = "LBBB"
    calls = pd.DataFrame({r: frame[name] for r, frame in ecg.readers.items()})
    found = matched_operating_point(ecg.truth[name], ecg.scores[name], calls)
    own = found.readers.set_index("reader")
    # The network and the second cardiologist have one point here.
    assert own.loc["cardiologist2", "reading"] == "equal"
    mean = compare_mean_reader(ecg.truth[name], ecg.scores[name], calls)
    assert "cardiologist2" not in mean.readers_above
    area = reader_hull_auc(ecg.truth[name], ecg.scores[name], calls)
    assert area.share_outside > 0.9
