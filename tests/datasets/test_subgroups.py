import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skcalfair._log_odds import log_odds, sigmoid
from skcalfair.datasets import make_skin_tone_cohort, make_subgroup_scores
from skcalfair.metrics import expected_calibration_error


def standardised_residual(rows):
    """Sum of outcome - posterior in units of its standard error, by patient."""
    residual = (rows["outcome"] - rows["posterior"]).groupby(rows["patient"]).sum()
    return residual.sum() / np.sqrt((residual**2).sum())


class TestFrame:
    def test_default_is_the_shape_of_the_study(self):
        data = make_subgroup_scores(random_state=0)
        columns = ["outcome", "score", "group", "patient", "posterior"]
        assert list(data.frame.columns) == columns
        assert data.frame["group"].value_counts().to_dict() == {
            "light": 1423,
            "dark": 71,
        }
        assert set(data.frame["outcome"]) == {0, 1}
        assert data.frame["score"].between(0, 1).all()
        assert data.frame["patient"].is_unique
        assert data.frame.index.equals(pd.RangeIndex(1494))
        assert data.parameters.loc["dark"].to_dict() == {
            "n_samples": 71,
            "prevalence": 0.47,
            "separability": 2.0,
            "score_shift": 0.0,
            "slope": 1.0,
            "intercept": 0.0,
        }

    @pytest.mark.parametrize(
        "sizes", [{"A": 1}, {1: 5, 2: 7, 3: 1}, {("F", "old"): 3, ("M", "old"): 2}]
    )
    def test_sizes_are_exact_and_labels_kept(self, sizes):
        data = make_subgroup_scores(sizes, rows_per_patient=2, random_state=0)
        assert data.frame["group"].value_counts().to_dict() == sizes
        assert data.parameters["n_samples"].to_dict() == sizes

    def test_dicts_go_to_their_group_in_any_order(self):
        data = make_subgroup_scores(
            {"A": 3, "B": 3},
            prevalence={"B": 0.2, "A": 0.1},
            slope={"B": 2, "A": 3},
            separability=0,
            random_state=0,
        )
        assert data.parameters["prevalence"].to_dict() == {"A": 0.1, "B": 0.2}
        assert data.parameters["slope"].to_dict() == {"A": 3.0, "B": 2.0}
        assert_allclose(
            data.frame["posterior"], data.frame["group"].map({"A": 0.1, "B": 0.2})
        )

    def test_shuffling_only_changes_the_order(self):
        sizes = {"B": 40, "A": 30}
        ordered = make_subgroup_scores(sizes, shuffle=False, random_state=3).frame
        shuffled = make_subgroup_scores(sizes, random_state=3).frame
        assert ordered["group"].tolist() == ["B"] * 40 + ["A"] * 30
        assert ordered["patient"].is_monotonic_increasing
        assert shuffled["group"].tolist() != ordered["group"].tolist()
        assert_frame_equal(shuffled.sort_values("patient", ignore_index=True), ordered)


class TestRandomState:
    @pytest.mark.parametrize(
        "make", [lambda: 5, lambda: np.random.default_rng(5), np.random.RandomState]
    )
    def test_same_state_same_data(self, make):
        if make is np.random.RandomState:
            first, second = np.random.RandomState(5), np.random.RandomState(5)
        else:
            first, second = make(), make()
        assert_frame_equal(
            make_subgroup_scores(random_state=first).frame,
            make_subgroup_scores(random_state=second).frame,
        )

    def test_a_generator_moves_on(self):
        rng = np.random.default_rng(5)
        one = make_subgroup_scores(random_state=rng).frame
        other = make_subgroup_scores(random_state=rng).frame
        assert not one["score"].equals(other["score"])

    def test_none_is_new_data(self):
        one, other = make_subgroup_scores().frame, make_subgroup_scores().frame
        assert not one["score"].equals(other["score"])

    def test_a_group_does_not_depend_on_the_size_of_another(self):
        one, other = (
            make_subgroup_scores(
                {"A": n, "B": 50},
                rows_per_patient=(1, 3),
                shuffle=False,
                random_state=2,
            ).frame.query("group == 'B'")
            for n in [10, 1000]
        )
        columns = ["outcome", "score", "posterior"]
        assert_frame_equal(
            one[columns].reset_index(drop=True), other[columns].reset_index(drop=True)
        )


class TestTruth:
    def test_default_scores_are_the_true_probabilities(self):
        frame = make_subgroup_scores(random_state=0).frame
        assert frame["score"].equals(frame["posterior"])

    @pytest.mark.parametrize("rows_per_patient", [1, (1, 4)])
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"prevalence": 0.05, "separability": 0.7},
            {"score_shift": {"A": -1.5, "B": 2.0}},
            {"slope": {"A": 0.5, "B": 2.0}, "intercept": 0.4},
        ],
        ids=str,
    )
    def test_outcomes_follow_the_posterior(self, parameters, rows_per_patient):
        frame = make_subgroup_scores(
            {"A": 40_000, "B": 20_000},
            rows_per_patient=rows_per_patient,
            random_state=1,
            **parameters,
        ).frame
        # Tenths of each group: a cell without a single event has no standard error.
        tenth = frame.groupby("group")["posterior"].transform(pd.qcut, 10, labels=False)
        for _, rows in frame.groupby(["group", tenth]):
            assert abs(standardised_residual(rows)) < 4

    @pytest.mark.parametrize("separability", [0.5, 2.0, 3.0])
    def test_prevalence_and_discrimination_are_as_chosen(self, separability):
        n = 100_000
        frame = make_subgroup_scores(
            {"A": n}, prevalence=0.3, separability=separability, random_state=0
        ).frame
        assert_allclose(frame["outcome"].mean(), 0.3, atol=4 * np.sqrt(0.21 / n))
        assert_allclose(frame["posterior"].mean(), 0.3, atol=4 * np.sqrt(0.21 / n))
        assert_allclose(
            roc_auc_score(frame["outcome"], frame["score"]),
            norm.cdf(separability / np.sqrt(2)),
            atol=0.008,
        )

    def test_slope_and_intercept_relate_score_and_posterior(self):
        data = make_subgroup_scores(
            {"A": 500, "B": 500},
            slope={"A": 0.6, "B": 1.5},
            intercept={"A": 0.3, "B": -0.5},
            random_state=0,
        )
        truth = data.parameters.loc[data.frame["group"]]
        expected = sigmoid(
            truth["intercept"].to_numpy()
            + truth["slope"].to_numpy() * log_odds(data.frame["score"])
        )
        assert_allclose(data.frame["posterior"], expected, rtol=1e-9)

    @pytest.mark.parametrize(("slope", "intercept"), [(1, 0), (0.6, 0.3), (1.8, -0.7)])
    def test_logistic_recalibration_finds_slope_and_intercept(self, slope, intercept):
        frame = make_subgroup_scores(
            {"A": 100_000}, slope=slope, intercept=intercept, random_state=0
        ).frame
        x = log_odds(frame["score"])[:, np.newaxis]
        fit = LogisticRegression(C=np.inf).fit(x, frame["outcome"])
        # Four standard errors from the information matrix.
        design = np.column_stack([np.ones(len(x)), x])
        weight = (frame["posterior"] * (1 - frame["posterior"])).to_numpy()
        error = np.sqrt(np.diag(np.linalg.inv(design.T @ (design * weight[:, None]))))
        assert abs(fit.intercept_[0] - intercept) < 4 * error[0]
        assert abs(fit.coef_[0, 0] - slope) < 4 * error[1]

    def test_shift_moves_all_scores_alike_and_the_prevalence_with_them(self):
        base, moved = (
            make_subgroup_scores({"A": 5000}, score_shift=shift, random_state=0).frame
            for shift in [0.0, -1.0]
        )
        assert_allclose(log_odds(moved["score"]), log_odds(base["score"]) - 1)
        assert moved["outcome"].mean() < base["outcome"].mean() - 0.03

    def test_no_separability_is_a_constant_score(self):
        frame = make_subgroup_scores({"A": 9}, separability=0, random_state=0).frame
        assert_allclose(frame["score"], 0.47)


class TestPatients:
    def test_numbers_and_groups(self):
        frame = make_subgroup_scores(
            {"A": 301, "B": 100}, rows_per_patient=3, random_state=0
        ).frame
        assert (frame.groupby("patient")["group"].nunique() == 1).all()
        rows = frame["patient"].value_counts().sort_index()
        assert rows.index.tolist() == list(range(101 + 34))
        # The last patient of each group has what is left.
        assert set(rows.drop([100, 134])) == {3}
        assert rows[[100, 134]].tolist() == [1, 1]

    def test_range_of_rows(self):
        frame = make_subgroup_scores(
            {"A": 3000}, rows_per_patient=(2, 4), random_state=0
        ).frame
        rows = frame["patient"].value_counts()
        assert set(rows.drop(frame["patient"].max())) == {2, 3, 4}

    @staticmethod
    def correlation_of_pairs(column, correlation):
        frame = make_subgroup_scores(
            {"A": 20_000},
            rows_per_patient=2,
            patient_correlation=correlation,
            shuffle=False,
            random_state=0,
        ).frame
        values = frame[column].to_numpy(dtype=float).reshape(-1, 2)
        return np.corrcoef(values.T)[0, 1]

    @pytest.mark.parametrize("column", ["outcome", "score"])
    def test_rows_of_a_patient_are_correlated_as_asked(self, column):
        none, some, much = (
            self.correlation_of_pairs(column, correlation)
            for correlation in [0.0, 0.5, 0.9]
        )
        assert abs(none) < 4 / np.sqrt(10_000)
        assert 0.2 < some < 0.6
        assert much > some + 0.2

    def test_full_correlation_repeats_the_row(self):
        assert_allclose(self.correlation_of_pairs("score", 1.0), 1)
        assert_allclose(self.correlation_of_pairs("outcome", 1.0), 1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"group_sizes": {}}, "at least one group"),
        ({"group_sizes": [10, 20]}, "group_sizes"),
        ({"group_sizes": {"A": 0}}, "at least 1; got 0 for group 'A'"),
        ({"group_sizes": {"A": 2.5}}, "whole numbers of rows"),
        ({"group_sizes": {"A": True}}, "whole numbers of rows"),
        ({"group_sizes": {None: 5}}, "label of group_sizes is missing"),
        ({"group_sizes": {np.nan: 5}}, "label of group_sizes is missing"),
        ({"prevalence": 0.0}, r"prevalence must be .* in \(0, 1\); got 0.0"),
        ({"prevalence": 1.0}, r"prevalence must be .* in \(0, 1\)"),
        ({"prevalence": {"light": 0.5}}, r"expected \['light', 'dark'\], got \['light"),
        ({"slope": {"light": 1, "dark": 1, "x": 1}}, "slope must be one number or"),
        ({"slope": 0}, r"slope must be .* in \(0, inf\)"),
        ({"slope": {"light": 1, "dark": "2"}}, "got '2' for group 'dark'"),
        ({"slope": "2"}, "slope"),
        ({"separability": -1}, r"separability must be .* in \[0, inf\)"),
        ({"separability": np.inf}, "separability must be a finite number"),
        ({"score_shift": np.nan}, "score_shift must be a finite number"),
        ({"intercept": -np.inf}, "intercept must be a finite number"),
        ({"rows_per_patient": 0}, "rows_per_patient"),
        ({"rows_per_patient": 1.5}, "rows_per_patient"),
        ({"rows_per_patient": (0, 2)}, "1 <= smallest <= largest"),
        ({"rows_per_patient": (3, 2)}, "1 <= smallest <= largest"),
        ({"rows_per_patient": (1, 2, 3)}, "a pair"),
        ({"rows_per_patient": (1, 2.5)}, "a pair"),
        ({"patient_correlation": 1.1}, "patient_correlation"),
        ({"patient_correlation": -0.1}, "patient_correlation"),
        ({"shuffle": "yes"}, "shuffle"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "0"}, "random_state"),
    ],
    ids=str,
)
def test_bad_input_is_named(bad, message):
    with pytest.raises(ValueError, match=message):
        make_subgroup_scores(**bad)


class TestSkinToneCohort:
    @staticmethod
    def calibration_errors(cohort, n_resamples=200):
        """ECE of light and dark skin, and of light skin at the size of dark."""
        by_tone = {
            tone: rows[["malignant", "score"]].to_numpy()
            for tone, rows in cohort.groupby("skin_tone")
        }

        def error(rows):
            return expected_calibration_error(rows[:, 0], rows[:, 1])

        rng = np.random.default_rng(0)
        light, dark = by_tone["light"], by_tone["dark"]
        matched = [
            error(rng.choice(light, size=len(dark), replace=False))
            for _ in range(n_resamples)
        ]
        return error(light), error(dark), np.array(matched)

    def test_shape(self):
        cohort = make_skin_tone_cohort()
        assert list(cohort.columns) == ["malignant", "score", "skin_tone", "patient"]
        assert cohort["skin_tone"].value_counts().to_dict() == {
            "light": 1423,
            "dark": 71,
        }
        assert abs(cohort["malignant"].mean() - 0.47) < 4 * np.sqrt(0.25 / 1494)
        assert set(cohort["patient"].value_counts()) == {1, 2}

    def test_always_the_same_unless_asked(self):
        assert_frame_equal(make_skin_tone_cohort(), make_skin_tone_cohort(0))
        assert not make_skin_tone_cohort(1).equals(make_skin_tone_cohort())
        assert not make_skin_tone_cohort(None).equals(make_skin_tone_cohort(None))

    def test_the_naive_gap_is_sample_size(self):
        light, dark, matched = self.calibration_errors(make_skin_tone_cohort())
        assert dark > 4 * light
        low, high = np.quantile(matched, [0.025, 0.975])
        assert low < dark < high
        assert abs(dark - matched.mean()) < 0.03

    def test_seed_0_is_no_exception(self):
        errors = [
            self.calibration_errors(make_skin_tone_cohort(seed), 20)
            for seed in range(40)
        ]
        light, dark = np.array([error[:2] for error in errors]).T
        matched = np.array([error[2].mean() for error in errors])
        assert (dark > light).all()
        assert np.median(dark / light) > 4
        gap = dark - matched
        assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(len(gap))
