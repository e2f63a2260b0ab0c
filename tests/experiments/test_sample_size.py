import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from scipy.stats import chisquare, wilcoxon
from sklearn.preprocessing import FunctionTransformer

from skcalfair._random import child_seeds
from skcalfair.datasets import BetaDecalibrator, make_calibrated_scores
from skcalfair.experiments import sample_size_study
from skcalfair.experiments._nested_samples import (
    FIRST,
    SAMPLE_METRICS,
    VALIDATION,
    _leaving,
    draw_parts,
)
from skcalfair.metrics import (
    adaptive_calibration_error,
    brier_score_loss,
    calibration_loss,
    expected_calibration_error,
    log_loss,
    maximum_calibration_error,
    squared_calibration_error,
)

PUBLIC = {
    "expected_calibration_error": expected_calibration_error,
    "maximum_calibration_error": maximum_calibration_error,
    "adaptive_calibration_error": adaptive_calibration_error,
    "squared_calibration_error": squared_calibration_error,
    "log_loss": lambda y, p, n_bins: log_loss(y, p),
    "brier_score_loss": lambda y, p, n_bins: brier_score_loss(y, p),
}


def scores(n, seed=0, decimals=None, **options):
    frame = make_calibrated_scores(n, random_state=seed, **options).frame
    p = frame["score"].to_numpy()
    return frame["outcome"].to_numpy(), p if decimals is None else p.round(decimals)


def brute_force(y, p, distortions, fractions, n_splits, seed, n_bins, sizes):
    """Every value by the public metrics on the very rows of each sample."""
    order = np.lexsort((y, p))[::-1]  # by descending score: the rows that parts number
    y, p = y[order], p[order]
    n_validation, n_test = sizes
    rows = []
    for split, child in enumerate(child_seeds(seed, n_splits)):
        cuts = [round(f * n_test) for f in fractions]
        parts = draw_parts(len(y), n_validation, cuts, np.random.default_rng(child))
        for name, distort in distortions.items():
            q = distort(p)
            validation = parts == VALIDATION
            for k, fraction in enumerate(fractions):
                test = (parts >= FIRST) & (parts <= FIRST + k)
                assert test.sum() == cuts[k]
                for metric in SAMPLE_METRICS:
                    if metric in PUBLIC:
                        value = PUBLIC[metric](y[test], q[test], n_bins=n_bins)
                    else:
                        value = calibration_loss(
                            y[test],
                            q[test],
                            score=metric.removeprefix("calibration_loss_"),
                            recalibrate="held_out",
                            y_val=y[validation],
                            p_val=q[validation],
                        )
                    rows.append((name, split, fraction, metric, cuts[k], value))
    columns = ["decalibration", "split", "fraction", "metric", "n", "value"]
    return pd.DataFrame(rows, columns=columns)


CASES = {
    "distinct": {"n": 400, "fractions": [0.1, 0.3, 1.0], "n_bins": 15},
    "tied": {"n": 500, "fractions": [0.2, 0.25, 0.7], "n_bins": 7, "decimals": 1},
    "few": {"n": 300, "fractions": [0.05, 0.06, 0.5, 1.0], "n_bins": 15},
    "rare": {"n": 900, "fractions": [0.5, 1.0], "n_bins": 10, "prevalence": 0.1},
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_public_metrics(case):
    options = dict(CASES[case])
    n, fractions, n_bins = (options.pop(k) for k in ("n", "fractions", "n_bins"))
    y, p = scores(n, **options)
    result = sample_size_study(
        y,
        p,
        decalibrations={"as is": (1, 1), "over": (2, 2), "odd": (0.6, 1.7)},
        metrics=SAMPLE_METRICS,
        fractions=fractions,
        n_splits=7,
        test_size=0.4,
        validation_size=0.35,
        n_bins=n_bins,
        random_state=3,
    )
    distortions = {
        name: lambda p, shapes=shapes: BetaDecalibrator(*shapes).fit_transform(
            p[:, np.newaxis]
        )[:, 0]
        for name, shapes in (("as is", (1, 1)), ("over", (2, 2)), ("odd", (0.6, 1.7)))
    }
    expected = brute_force(
        y, p, distortions, fractions, 7, 3, n_bins, (round(0.35 * n), round(0.4 * n))
    )
    keys = ["decalibration", "split", "fraction", "metric"]
    both = result.frame.merge(expected, on=keys, suffixes=("", "_expected"))
    assert len(both) == len(expected) == len(result.frame)
    assert_array_equal(both["n"], both["n_expected"])
    assert_allclose(both["value"], both["value_expected"], rtol=1e-10, atol=1e-10)


def test_saturated_scores_are_one_value():
    # Strong distortion makes many scores exactly 1: ties that the scores did not have.
    y, p = scores(600, separability=4.0)
    distort = BetaDecalibrator(30, 30)
    q = distort.fit_transform(p[:, np.newaxis])[:, 0]
    assert (q == 1).sum() > 20
    result = sample_size_study(
        y,
        p,
        decalibrations={"strong": distort},
        metrics=["adaptive_calibration_error", "expected_calibration_error"],
        fractions=[0.5, 1.0],
        n_splits=5,
        random_state=0,
    )
    order = np.lexsort((y, p))[::-1]
    for _split, seed in enumerate(child_seeds(0, 5)):
        parts = draw_parts(600, 120, [60, 120], np.random.default_rng(seed))
        test = order[parts >= FIRST]
        found = result.frame.query("split == @_split and fraction == 1")["value"]
        assert_allclose(
            found,
            [
                adaptive_calibration_error(y[test], q[test]),
                expected_calibration_error(y[test], q[test]),
            ],
            atol=1e-10,
        )


class TestParts:
    def test_sizes_are_exact(self):
        for seed in range(200):
            rng = np.random.default_rng(seed)
            n = int(rng.integers(5, 3000))
            sizes = np.sort(rng.choice(np.arange(1, n // 2), rng.integers(1, 3)))
            n_validation = int(rng.integers(1, n - sizes[-1] + 1))
            parts = draw_parts(n, n_validation, sizes.tolist(), rng)
            counts = np.bincount(parts, minlength=len(sizes) + 2)
            assert counts[VALIDATION] == n_validation
            assert_array_equal(np.cumsum(counts[FIRST:]), sizes)

    def test_a_rare_row_is_looked_for_until_it_is_found(self):
        parts = np.zeros(10_000, dtype=np.uint8)
        parts[1234] = 1
        rng = np.random.default_rng(0)
        assert _leaving(parts, np.array([0, 1]), rng).tolist() == [1234]
        both = _leaving(parts, np.array([3, 1]), rng)
        assert len(set(both)) == 4
        assert 1234 in both

    def test_all_splits_are_equally_likely(self):
        rng = np.random.default_rng(0)
        found = [
            bytes(draw_parts(5, 1, [1, 3], rng)) for _ in range(6000)
        ]  # 5! / (1! 1! 2! 1!) = 60 splits
        _, counts = np.unique(found, return_counts=True)
        assert len(counts) == 60
        assert chisquare(counts).pvalue > 1e-3


class TestClaims:
    @pytest.fixture(scope="class")
    @staticmethod
    def result():
        y, p = scores(40_000, seed=1)
        return sample_size_study(y, p, n_splits=40, random_state=0)

    def test_binned_errors_grow_as_the_sample_shrinks(self, result):
        table = result.wilcoxon.query("decalibration == 'calibrated'")
        table = table.set_index("metric")
        grown = table["value"] / table["reference_value"]
        for metric in list(PUBLIC)[:3]:
            assert grown[metric] > 1.5
            assert table.loc[metric, "p_value"] < 1e-6
            assert not table.loc[metric, "size_robust"]

    def test_size_robust_ones_do_not(self, result):
        table = result.wilcoxon[result.wilcoxon["size_robust"]]
        frame = result.frame.query("fraction == 0.1")
        spread = frame.groupby(["decalibration", "metric"])["value"].sem()
        for row in table.itertuples():
            tolerance = 4 * spread[row.decalibration, row.metric]
            assert abs(row.value - row.reference_value) < tolerance

    def test_the_effect_fades_as_decalibration_grows(self, result):
        grown = result.wilcoxon.query("metric == 'expected_calibration_error'")
        difference = (grown["value"] - grown["reference_value"]).to_numpy()
        assert difference[0] > difference[1] > difference[2]
        relative = difference / grown["reference_value"].to_numpy()
        assert relative[0] > relative[1] > relative[2]

    def test_wilcoxon_is_that_of_the_frame(self, result):
        wide = result.frame.pivot_table(
            index=["decalibration", "metric", "split"],
            columns="fraction",
            values="value",
        )
        for row in result.wilcoxon.itertuples():
            pair = wide.loc[row.decalibration, row.metric]
            assert_allclose(row.p_value, wilcoxon(pair[0.1], pair[1.0]).pvalue)
            assert_allclose([row.value, row.reference_value], pair[[0.1, 1.0]].mean())
            assert (row.n_units, row.unit) == (40, "split")
            assert row.method == "wilcoxon_as_published"

    def test_brier_score_moves_only_with_the_decalibration(self, result):
        brier = result.frame.query("metric == 'brier_score_loss' and fraction == 1")
        mean = brier.groupby("decalibration")["value"].mean()
        assert mean["calibrated"] < mean["moderate"] < mean["strong"]


class TestDecalibrations:
    def test_three_ways_to_say_the_same(self):
        y, p = scores(500)
        by = {
            "pair": (2, 3),
            "transformer": BetaDecalibrator(2, 3),
            "function": lambda p: BetaDecalibrator(2, 3).fit_transform(p[:, None])[
                :, 0
            ],
        }
        frame = sample_size_study(
            y, p, decalibrations=by, n_splits=3, random_state=0
        ).frame
        parts = [frame.query("decalibration == @name")["value"] for name in by]
        assert_array_equal(parts[0], parts[1])
        assert_array_equal(parts[0], parts[2])

    def test_curves(self):
        y, p = scores(300)
        result = sample_size_study(
            y, p, decalibrations={"square": np.square}, n_splits=1, random_state=0
        )
        assert_allclose(
            result.curves["decalibrated"], result.curves["probability"] ** 2
        )
        assert result.curves["probability"].iloc[[0, -1]].tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("how", "match"),
        [
            (lambda p: 1 - p, "must not change the order"),
            (lambda p: p + 1, r"as many in \[0, 1\]"),
            (lambda p: p[:3], "300 probabilities into as many"),
            ("strong", "must be pairs"),
            ((-1.0, 1.0), "alpha"),
            (FunctionTransformer(lambda X: 1 - X), "must not change the order"),
        ],
        ids=["decreasing", "outside", "short", "text", "negative", "transformer"],
    )
    def test_refuses(self, how, match):
        y, p = scores(300)
        with pytest.raises(ValueError, match=match):
            sample_size_study(y, p, decalibrations={"own": how}, n_splits=1)


class TestParameters:
    def test_order_of_the_rows_does_not_matter(self):
        y, p = scores(500, decimals=2)
        order = np.random.default_rng(1).permutation(500)
        one, other = (
            sample_size_study(a, b, n_splits=3, random_state=0).frame
            for a, b in ((y, p), (y[order], p[order]))
        )
        assert_frame_equal(one, other)

    def test_n_jobs_does_not_matter(self):
        y, p = scores(500)
        one, other = (
            sample_size_study(y, p, n_splits=12, random_state=0, n_jobs=n_jobs)
            for n_jobs in (1, 2)
        )
        assert_frame_equal(one.frame, other.frame)
        assert_frame_equal(one.wilcoxon, other.wilcoxon)

    def test_more_splits_keep_the_first(self):
        y, p = scores(300)
        few, many = (
            sample_size_study(y, p, n_splits=n, random_state=0).frame for n in (3, 8)
        )
        assert_frame_equal(few, many.query("split < 3").reset_index(drop=True))

    def test_labels(self):
        y, p = scores(300)
        text = np.where(y == 1, "malignant", "benign")
        one = sample_size_study(y, p, n_splits=2, random_state=0)
        other = sample_size_study(
            text, p, pos_label="malignant", n_splits=2, random_state=0
        )
        assert_frame_equal(one.frame, other.frame)

    def test_validation_of_one_class_has_no_calibration_loss(self):
        y = np.zeros(40, dtype=int)
        y[0] = 1
        p = np.linspace(0.1, 0.9, 40)
        frame = sample_size_study(y, p, n_splits=20, random_state=0).frame
        missing = frame[frame["value"].isna()]
        assert set(missing["metric"]) == {
            "calibration_loss_log_loss",
            "calibration_loss_brier",
        }
        assert (missing["reason"] == "the validation rows hold one class only").all()
        assert frame[frame["value"].notna()]["reason"].isna().all()

    @pytest.mark.parametrize(
        ("parameters", "match"),
        [
            ({"metrics": ["roc_auc"]}, "got 'roc_auc'"),
            ({"metrics": []}, "got 'none'"),
            ({"fractions": [0.5, 0.5]}, "increasing numbers"),
            ({"fractions": [0.5, 1.5]}, "increasing numbers"),
            ({"fractions": [0.001, 1]}, "is no row"),
            ({"test_size": 0.7, "validation_size": 0.7}, "test_size=0.7"),
            ({"validation_size": 1e-6}, "at least one row"),
            ({"decalibrations": {}}, "at least one"),
            ({"n_splits": 0}, "n_splits"),
            ({"results_folder": "results"}, "needs a random_state"),
        ],
        ids=str,
    )
    def test_refuses(self, parameters, match):
        y, p = scores(100)
        with pytest.raises(ValueError, match=match):
            sample_size_study(y, p, **parameters)

    def test_refuses_scores_that_are_none(self):
        with pytest.raises(ValueError, match="y_prob must lie in"):
            sample_size_study([0, 1], [0.5, 1.5])
