from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from scipy.stats import binom

from skcalfair.audit import SubgroupAuditor, audit_scores
from skcalfair.datasets import (
    BetaDecalibrator,
    make_calibrated_scores,
    make_skin_tone_cohort,
)
from skcalfair.displays import (
    DecalibrationDisplay,
    GroupBalanceDisplay,
    GroupRunsDisplay,
    ReliabilityDisplay,
    SampleSizeDisplay,
)
from skcalfair.experiments import sample_size_study, subgroup_study
from skcalfair.metrics import reliability_curve


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def cohort():
    return make_skin_tone_cohort()


@pytest.fixture(scope="module")
def sizes():
    frame = make_calibrated_scores(2000, random_state=0).frame
    return sample_size_study(
        frame["outcome"], frame["score"], n_splits=20, random_state=0
    )


@pytest.fixture(scope="module")
def study(cohort):
    return subgroup_study(
        None,
        cohort[["score"]],
        cohort["malignant"],
        sensitive_features=cohort["skin_tone"],
        metrics=["roc_auc", "expected_calibration_error", "brier_score_loss"],
        cv=5,
        n_resamples=5,
        random_state=0,
    )


class TestReliability:
    @pytest.fixture
    def display(self, cohort):
        return ReliabilityDisplay.from_predictions(
            cohort["malignant"],
            cohort["score"],
            sensitive_features=cohort["skin_tone"],
            n_bins=5,
        )

    def test_frame_is_the_curve_of_each_group(self, cohort, display):
        for group, rows in cohort.groupby("skin_tone"):
            curve = reliability_curve(rows["malignant"], rows["score"], n_bins=5)
            found = display.frame()
            found = found[found["group"] == group].reset_index(drop=True)
            assert_frame_equal(found[list(curve.frame())], curve.frame())
            n, p = curve.count, curve.mean_predicted
            assert_allclose(found["consistency_lower"], binom.ppf(0.025, n, p) / n)
            assert_allclose(found["consistency_upper"], binom.ppf(0.975, n, p) / n)

    def test_calibrated_scores_are_within_the_bars(self):
        # At most 5 % of the bins outside, as the bars promise.
        frame = make_calibrated_scores(60_000, random_state=0).frame
        samples = np.arange(60_000) % 60
        table = ReliabilityDisplay.from_predictions(
            frame["outcome"], frame["score"], sensitive_features=samples
        ).frame()
        low, high = table["consistency_lower"], table["consistency_upper"]
        outside = (table["observed"] < low) | (table["observed"] > high)
        assert 0.01 < outside.mean() < 0.06

    def test_one_panel_a_group(self, display):
        display.plot()
        assert [ax.get_title() for ax in display.axes_] == [
            "dark (n = 71)",
            "light (n = 1,423)",
        ]
        line = display.axes_[1].lines[0]
        light = display.frame().query("group == 'light'")
        assert_allclose(line.get_xydata(), light[["mean_predicted", "observed"]])
        bars = display.axes_[1].collections[0].get_segments()
        assert_allclose(
            [bar[:, 1] for bar in bars],
            light[["consistency_lower", "consistency_upper"]],
        )

    def test_all_in_one_axes(self, display):
        figure, ax = plt.subplots()
        assert display.plot(ax, bars="interval") is display
        assert display.figure_ is figure
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["dark (n = 71)", "light (n = 1,423)"]
        light = display.frame().query("group == 'light'")
        bars = ax.collections[1].get_segments()
        assert_allclose([bar[:, 1] for bar in bars], light[["lower", "upper"]])

    def test_without_groups_with_weights_and_text(self, cohort):
        text = np.where(cohort["malignant"] == 1, "yes", "no")
        twice = ReliabilityDisplay.from_predictions(
            text,
            cohort["score"],
            pos_label="yes",
            sample_weight=np.full(len(text), 2),
        )
        assert twice.frame()["count"].sum() == 2 * len(text)
        assert set(twice.frame()["group"]) == {"all"}
        assert twice.plot().axes_[0].get_title() == ""

    def test_group_of_one_class(self):
        display = ReliabilityDisplay.from_predictions(
            [0, 0, 1, 0], [0.1, 0.2, 0.9, 0.3], sensitive_features=["a", "a", "b", "b"]
        )
        assert display.frame().query("group == 'a'")["observed"].tolist() == [0, 0]

    def test_intersections_and_missing_groups(self, cohort):
        features = {"tone": cohort["skin_tone"], "half": cohort["patient"] % 2}
        groups = ReliabilityDisplay.from_predictions(
            cohort["malignant"], cohort["score"], sensitive_features=features
        ).frame()["group"]
        assert set(groups) == {"dark & 0", "dark & 1", "light & 0", "light & 1"}
        tone = cohort["skin_tone"].where(cohort["skin_tone"] == "dark")
        options = {"sensitive_features": tone}
        data = cohort["malignant"], cohort["score"]
        with pytest.raises(ValueError, match="missing values"):
            ReliabilityDisplay.from_predictions(*data, **options)
        known = ReliabilityDisplay.from_predictions(*data, **options, missing="drop")
        assert set(known.frame()["group"]) == {"dark"}

    def test_refuses(self, display):
        with pytest.raises(ValueError, match="bars must be one of"):
            display.plot(bars="error")
        with pytest.raises(ValueError, match="'observed' is missing"):
            ReliabilityDisplay(display.frame().drop(columns="observed"))
        with pytest.raises(TypeError, match="must be a DataFrame; got dict"):
            ReliabilityDisplay({})


class TestGroupRuns:
    def test_frame_is_the_statistics_of_the_runs(self, study):
        table = GroupRunsDisplay.from_result(study).frame()
        assert len(table) == 3 * 2 * 2
        for row in table.itertuples():
            held = study.values.query(
                "metric == @row.metric and group == @row.group "
                "and sampling == @row.sampling"
            )["value"]
            assert row.n_runs == 5
            assert_allclose(
                [row.mean, row.low, row.q1, row.median, row.q3, row.high],
                [held.mean(), *np.quantile(held, [0.05, 0.25, 0.5, 0.75, 0.95])],
            )

    def test_one_panel_a_metric_and_one_box_a_group_and_sampling(self, study):
        display = GroupRunsDisplay.from_result(study).plot()
        titles = [ax.get_title() for ax in display.axes_]
        assert titles == ["AUC", "ECE", "Brier score"]
        for ax in display.axes_:
            assert len(ax.patches) == 4
            ticks = [label.get_text() for label in ax.get_xticklabels()]
            assert ticks == ["all rows", "equal size"]
        hatches = {patch.get_hatch() for patch in display.axes_[0].patches}
        assert len(hatches) == 2

    def test_metrics_can_be_chosen_and_axes_given(self, study):
        _, axes = plt.subplots(1, 2)
        display = GroupRunsDisplay.from_result(
            study, metrics=["brier_score_loss", "roc_auc"]
        ).plot(axes)
        assert [ax.get_title() for ax in axes] == ["Brier score", "AUC"]
        assert axes[0].get_legend() is not None
        assert display.figure_ is axes[0].figure
        with pytest.raises(ValueError, match="got 'ece'"):
            GroupRunsDisplay.from_result(study, metrics=["ece"])
        with pytest.raises(ValueError, match="got 'none'"):
            GroupRunsDisplay.from_result(study, metrics=[])

    def test_other_results(self, cohort, study):
        auditor = SubgroupAuditor(
            metrics=["brier_score_loss"], cv=3, size_match=None, random_state=0
        ).fit(
            cohort[["score"]],
            cohort["malignant"],
            sensitive_features=cohort["skin_tone"],
        )
        table = GroupRunsDisplay.from_result(auditor).frame()
        assert table["n_runs"].tolist() == [3, 3]
        assert set(table["sampling"]) == {"naive"}
        audited = audit_scores(
            study.predictions["outcome"],
            study.predictions["score"],
            sensitive_features=study.predictions["group"],
            run=study.predictions["run"],
            metrics=["brier_score_loss"],
            n_resamples=40,
            random_state=0,
        )
        assert len(GroupRunsDisplay.from_result(audited).frame()) == 4
        with pytest.raises(ValueError, match="must have a table"):
            GroupRunsDisplay.from_result(SimpleNamespace(values=3))

    def test_what_has_no_value_stays_in_the_frame(self, study):
        values = study.values.copy()
        values.loc[values["group"] == "dark", "value"] = np.nan
        display = GroupRunsDisplay(values)
        dark = display.frame().query("group == 'dark'")
        assert (dark["n_runs"] == 0).all()
        assert dark["mean"].isna().all()
        assert len(display.plot().axes_[0].patches) == 2


class TestSampleSize:
    def test_frame(self, sizes):
        table = SampleSizeDisplay.from_result(sizes).frame()
        assert len(table) == 3 * 7 * 10
        row = table.iloc[0]
        held = sizes.frame.query(
            "decalibration == 'calibrated' and fraction == 0.1 "
            "and metric == 'expected_calibration_error'"
        )["value"]
        assert row["n_values"] == 20
        assert_allclose(row[["mean", "median"]].tolist(), [held.mean(), held.median()])

    def test_panels(self, sizes):
        display = SampleSizeDisplay.from_result(
            sizes,
            metrics=["brier_score_loss", "expected_calibration_error"],
            decalibrations=["strong", "calibrated"],
        ).plot()
        assert display.axes_.shape == (2, 2)
        assert [ax.get_title() for ax in display.axes_[0]] == ["Brier score", "ECE"]
        assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == [
            "strong",
            "calibrated",
        ]
        mean = display.axes_[1, 1].lines[0].get_xydata()
        expected = display.frame().query(
            "decalibration == 'calibrated' and metric == 'expected_calibration_error'"
        )
        assert_allclose(mean, expected[["fraction", "mean"]])

    def test_whole_set_of_the_study_of_groups(self, study):
        _, axes = plt.subplots(3)
        display = SampleSizeDisplay.from_result(study).plot(axes)
        assert display.axes_.shape == (1, 3)
        assert "decalibration" not in display.frame()
        with pytest.raises(ValueError, match="'decalibration' is missing"):
            SampleSizeDisplay.from_result(study, decalibrations=["calibrated"])


class TestDecalibration:
    def test_from_result_and_from_transformers_agree(self, sizes):
        names = {"calibrated": (1, 1), "moderate": (1.5, 1.5), "strong": (3, 3)}
        made = {name: BetaDecalibrator(*shapes) for name, shapes in names.items()}
        one = DecalibrationDisplay.from_result(sizes)
        other = DecalibrationDisplay.from_transformers(made)
        assert_frame_equal(one.frame(), other.frame())

    def test_plot(self, sizes):
        _, ax = plt.subplots()
        display = DecalibrationDisplay.from_result(sizes).plot(ax)
        assert display.ax_ is ax
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["calibrated", "moderate", "strong"]
        x, y = ax.lines[0].get_xydata().T
        assert_array_equal(x, y)
        assert DecalibrationDisplay.from_result(sizes).plot().figure_ is not None

    def test_refuses(self):
        with pytest.raises(ValueError, match="at least one"):
            DecalibrationDisplay.from_transformers({})


class TestGroupBalance:
    def test_counts(self, cohort):
        tone = cohort["skin_tone"].mask(cohort["patient"] % 3 == 0)
        table = GroupBalanceDisplay.from_labels(
            cohort["malignant"], sensitive_features=tone
        ).frame()
        known = tone.fillna("missing")
        expected = cohort["malignant"].groupby(known).agg(["size", "sum", "mean"])
        expected = expected.loc[table["group"]]
        assert_array_equal(table["n"], expected["size"])
        assert_array_equal(table["positives"], expected["sum"])
        assert_allclose(table["prevalence"], expected["mean"])
        assert_allclose(table["share"].sum(), 1)

    def test_from_results(self, cohort, study):
        own = GroupBalanceDisplay.from_labels(
            cohort["malignant"], sensitive_features=cohort["skin_tone"]
        ).frame()
        assert_frame_equal(GroupBalanceDisplay.from_result(study).frame(), own)

    def test_bars(self, cohort):
        labels = np.where(cohort["malignant"] == 1, "malignant", "benign")
        display = GroupBalanceDisplay.from_labels(
            labels, sensitive_features=cohort["skin_tone"], pos_label="malignant"
        )
        assert display.class_names == ("benign", "malignant")
        display.plot()
        widths = [patch.get_width() for patch in display.axes_[0].patches]
        assert widths == [777, 717]
        of_groups = [patch.get_width() for patch in display.axes_[1].patches]
        assert of_groups == [39, 738, 32, 685]
        texts = [text.get_text() for text in display.axes_[1].texts]
        assert texts == ["71, 45% malignant", "1,423, 48% malignant"]

    def test_rows_without_a_group_can_be_left_out(self):
        display = GroupBalanceDisplay.from_labels(
            ["a", "a"], sensitive_features=["x", None], missing="drop", pos_label="b"
        )
        assert display.frame()["n"].tolist() == [1]
        assert display.class_names == ("a", "b")
        assert isinstance(display.counts, pd.DataFrame)
