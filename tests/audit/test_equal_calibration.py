"""Tests of equal calibration: statistics by brute force, sizes by simulation."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from scipy.optimize import minimize
from scipy.special import expit, ndtr
from scipy.stats import chi2
from scipy.stats import f as f_distribution
from sklearn.linear_model import LogisticRegression

from skcalfair.audit import EqualCalibrationResult, equal_calibration_test
from skcalfair.audit._equal_amount import redrawn_squared_errors, squared_errors
from skcalfair.audit._group_score import (
    Cells,
    Problem,
    correlations,
    efficient_columns,
    group_score,
)
from skcalfair.audit._logistic import cluster_covariance, fit_logistic
from skcalfair.audit._multiplicity import adjust
from skcalfair.audit._permuted_groups import _GroupSums, score_strata
from skcalfair.audit._redraws import OutcomeRedraw, redrawn_p_value
from skcalfair.audit._spline import curve_basis, natural_spline
from skcalfair.exceptions import NotEstimableError
from skcalfair.metrics import squared_calibration_error

METHODS = ("score", "wald", "omnibus", "equal_amount", "permutation")


def sample(sizes, slopes=None, rows=1, shift=0.0, seed=0, level=0.0):
    """Outcomes, probabilities, groups and clusters."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    n = len(codes)
    clusters = np.arange(n) // rows
    x = 1.5 * rng.normal(size=n) + shift * (codes == 0)
    slope = np.ones(len(sizes)) if slopes is None else np.asarray(slopes)
    q = expit(slope[codes] * x + level)
    effect = rng.normal(size=clusters[-1] + 1)[clusters]
    noise = rng.normal(size=n)
    if rows > 1:
        noise = (noise + effect) / np.sqrt(2.0)
    return (ndtr(noise) < q).astype(int), expit(x), codes, clusters


def problem_of(y, p, codes, clusters=None):
    return Problem(
        y.astype(float), curve_basis(p), codes, int(codes.max()) + 1, clusters
    )


def run(y, p, codes, clusters=None, **options):
    return equal_calibration_test(
        y, p, sensitive_features=codes, clusters=clusters, random_state=0, **options
    )


class TestCurveBasis:
    def test_natural_spline_is_smooth_and_linear_outside(self):
        knots = np.array([-2.0, -0.7, 0.1, 1.0, 2.5])
        columns = natural_spline(np.linspace(-6, 6, 24001), knots)
        assert columns.shape[1] == 4
        second = np.diff(columns, 2, axis=0)
        grid = np.linspace(-6, 6, 24001)[1:-1]
        outside = (grid < -2.001) | (grid > 2.501)
        scale = np.abs(second).max() + 1e-12
        assert np.abs(second[outside]).max() < 1e-6 * scale + 1e-9
        # A jump of the second derivative would be a step of this size at one point.
        assert np.abs(np.diff(second, axis=0)).max() < 2e-3 * scale

    def test_spans_any_natural_spline(self):
        from scipy.interpolate import CubicSpline

        p = expit(1.5 * np.random.default_rng(0).normal(size=500))
        x = np.log(p) - np.log1p(-p)
        basis = curve_basis(p)
        assert basis.curve.shape == (500, 5)
        knots = np.interp(
            [0.05, 0.275, 0.5, 0.725, 0.95], np.linspace(0, 1, 500), np.sort(x)
        )
        spline = CubicSpline(knots, [0.3, -1.0, 2.0, 0.5, 1.0], bc_type="natural")
        inside = (x >= knots[0]) & (x <= knots[-1])
        target, columns = spline(x[inside]), basis.curve[inside]
        coef, *_ = np.linalg.lstsq(columns, target, rcond=None)
        assert_allclose(columns @ coef, target, atol=1e-9)

    @pytest.mark.parametrize("case", ["few", "atoms", "saturated", "constant", "pair"])
    def test_line_lies_within_the_curve(self, case):
        rng = np.random.default_rng(1)
        p = expit(1.5 * rng.normal(size=600))
        p = {
            "few": np.round(p, 1),
            "atoms": np.where(p > 0.6, 0.75, p),
            "saturated": np.where(p > 0.9, 1.0, np.where(p < 0.1, 0.0, p)),
            "constant": np.full(600, 0.3),
            "pair": np.where(p > 0.5, 1.0, 0.0),
        }[case]
        basis = curve_basis(p)
        coef, *_ = np.linalg.lstsq(basis.curve, basis.line, rcond=None)
        assert_allclose(basis.curve @ coef, basis.line, atol=1e-9)
        assert np.abs(basis.line[:, 1]).max() < 5.0
        if case in ("few", "constant", "pair"):
            assert basis.curve.shape[1] == len(np.unique(p))


class TestLogistic:
    def test_agrees_with_scikit_learn(self):
        y, p, _, _ = sample([400])
        columns = curve_basis(p).curve
        fit = fit_logistic(columns, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = LogisticRegression(
                C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000,
                solver="newton-cholesky",
            ).fit(columns, y)  # fmt: skip
        assert_allclose(fit.fitted, other.predict_proba(columns)[:, 1], atol=1e-6)

    def test_weights_are_repetition(self):
        y, p, _, _ = sample([300])
        columns = curve_basis(p).curve
        w = np.random.default_rng(0).integers(1, 4, size=300)
        many = np.repeat(np.arange(300), w)
        one = fit_logistic(columns, y, w.astype(float))
        two = fit_logistic(columns[many], y[many])
        assert_allclose(one.coef, two.coef, rtol=1e-6)
        assert_allclose(one.inverse, two.inverse, rtol=1e-5)

    def test_separation_is_said(self):
        x = np.linspace(-1, 1, 50)
        with pytest.raises(NotEstimableError, match="one class"):
            fit_logistic(np.column_stack([np.ones(50), x]), (x > 0).astype(float))
        with pytest.raises(NotEstimableError, match="vary"):
            fit_logistic(np.ones((50, 2)), (x > 0).astype(float))

    def test_mancl_derouen_against_the_definition(self):
        y, p, _, _ = sample([90])
        clusters = np.random.default_rng(0).integers(25, size=90)
        columns = curve_basis(p).curve[:, :3]
        fit = fit_logistic(columns, y)
        a = fit.fitted * (1 - fit.fitted)
        bread = np.linalg.inv(columns.T @ (a[:, None] * columns))
        meat = 0.0
        for c in np.unique(clusters):
            i = np.flatnonzero(clusters == c)
            d, v = np.diag(a[i]) @ columns[i], np.diag(a[i])
            h = d @ bread @ d.T @ np.linalg.inv(v)
            kept = np.linalg.inv(np.eye(len(i)) - h)
            u = d.T @ np.linalg.inv(v) @ kept @ (y - fit.fitted)[i]
            meat = meat + np.outer(u, u)
        assert_allclose(
            cluster_covariance(columns, fit, y, clusters),
            bread @ meat @ bread,
            rtol=1e-8,
        )


class TestScore:
    def brute_force(self, y, p, codes, omnibus):
        """Score test from a numerically differentiated likelihood."""
        basis = curve_basis(p)
        terms = basis.curve if omnibus else basis.line
        groups = range(codes.max())
        own = np.hstack([terms * (codes == g)[:, None] for g in groups])
        columns = np.hstack([basis.curve, own])
        k = basis.curve.shape[1]

        def loss(theta):
            eta = columns @ theta
            return np.sum(np.logaddexp(0.0, eta) - y * eta)

        start = minimize(
            lambda b: loss(np.r_[b, np.zeros(own.shape[1])]), np.zeros(k), tol=1e-10
        ).x
        theta, step = np.r_[start, np.zeros(own.shape[1])], 1e-4
        unit = step * np.eye(len(theta))
        gradient = np.array([loss(theta + u) - loss(theta - u) for u in unit])
        hessian = np.array(
            [
                [
                    loss(theta + u + v)
                    - loss(theta + u - v)
                    - loss(theta - u + v)
                    + loss(theta - u - v)
                    for v in unit
                ]
                for u in unit
            ]
        )
        gradient, hessian = gradient / (2 * step), hessian / (4 * step * step)
        return gradient @ np.linalg.solve(hessian, gradient)

    @pytest.mark.parametrize("omnibus", [False, True])
    def test_against_a_differentiated_likelihood(self, omnibus):
        y, p, codes, _ = sample([150, 300, 200], [0.5, 1.0, 1.3])
        found = group_score(problem_of(y, p, codes), omnibus)
        expected = self.brute_force(y, p, codes, omnibus)
        assert_allclose(found.statistic, expected, rtol=2e-3)
        assert found.df == (10 if omnibus else 4)
        result = run(y, p, codes, method="omnibus" if omnibus else "auto")
        assert_allclose(result.statistic, found.statistic)
        if not omnibus:
            assert_allclose(result.p_value, chi2.sf(found.statistic, 4))

    def test_clusters_of_one_row_change_nothing(self):
        y, p, codes, _ = sample([150, 300], [0.5, 1.0])
        plain = group_score(problem_of(y, p, codes))
        clustered = group_score(problem_of(y, p, codes, np.arange(len(y))))
        assert_allclose(plain.statistic, clustered.statistic, rtol=1e-4)

    @pytest.mark.parametrize("spanning", [False, True])
    def test_clustered_covariance_against_a_loop(self, spanning):
        y, p, codes, clusters = sample([90, 210, 120], rows=3)
        if spanning:
            clusters = np.random.default_rng(3).permutation(clusters)
        problem = problem_of(y, p, codes, clusters)
        own, between = correlations(problem, Cells.of(problem))
        e, s = problem.error, np.sqrt(problem.variance)
        same = clusters[:, None] == clusters
        np.fill_diagonal(same, False)
        r = np.empty((len(y), len(y)))
        group = codes[:, None] == codes
        for g in range(3):
            pairs = same & group & (codes == g)[:, None]
            value = (np.outer(e, e) * pairs).sum() / (np.outer(s, s) * pairs).sum()
            assert_allclose(own[g], np.clip(value, 0, 1), atol=1e-10)
            r[np.ix_(codes == g, codes == g)] = own[g]
        pairs = same & ~group
        if spanning:
            value = (np.outer(e, e) * pairs).sum() / (np.outer(s, s) * pairs).sum()
            assert_allclose(between, np.clip(value, 0, own.min()), atol=1e-10)
        else:
            assert between == 0.0
        r[~group] = between
        r = np.where(same, r, 0.0) + np.eye(len(y))
        columns = efficient_columns(problem, False) * s[:, None]
        assert_allclose(
            group_score(problem).covariance, columns.T @ r @ columns, rtol=1e-8
        )

    def test_one_class_groups_take_part(self):
        y, p, codes, clusters = sample([60, 600])
        y[codes == 0] = 0
        for c in (None, clusters):
            assert run(y, p, codes, c).p_value < 0.01
        low = np.where(codes == 0, p * 1e-3, p)
        assert run(y, low, codes).p_value > 0.05
        wald = run(y, p, codes, method="wald")
        assert np.isnan(wald.p_value)
        assert "one class" in wald.reason
        assert wald.comparisons.empty


class TestWald:
    @pytest.mark.parametrize("weights", [False, True])
    def test_against_a_brute_force_sandwich(self, weights):
        y, p, codes, clusters = sample([150, 330], [0.6, 1.0], rows=3)
        rng = np.random.default_rng(0)
        w = rng.uniform(0.5, 2.0, size=len(y)) if weights else np.ones(len(y))
        clusters = None if weights else clusters
        result = run(
            y, p, codes, clusters, method="wald", sample_weight=w if weights else None
        )
        basis = curve_basis(p)
        own = basis.line * (codes == 0)[:, None]
        columns = np.hstack([basis.curve, own])

        def loss(theta):
            eta = columns @ theta
            return np.sum(w * (np.logaddexp(0.0, eta) - y * eta))

        def slope(theta):
            return columns.T @ (w * (expit(columns @ theta) - y))

        start = np.zeros(columns.shape[1])
        theta = minimize(loss, start, jac=slope, method="BFGS", tol=1e-9).x
        q = expit(columns @ theta)
        a, e = w * q * (1 - q), w * (y - q)
        bread = np.linalg.inv(columns.T @ (a[:, None] * columns))
        meat = 0.0
        units = np.arange(len(y)) if clusters is None else clusters
        for c in np.unique(units):
            i = np.flatnonzero(units == c)
            h = a[i, None] * (columns[i] @ bread @ columns[i].T)
            u = columns[i].T @ np.linalg.solve(np.eye(len(i)) - h, e[i])
            meat = meat + np.outer(u, u)
        cov = (bread @ meat @ bread)[-2:, -2:]
        expected = theta[-2:] @ np.linalg.solve(cov, theta[-2:])
        assert_allclose(result.statistic, expected, rtol=1e-3)
        fewest = 150 if weights else 50
        assert_allclose(
            result.p_value, f_distribution.sf(expected / 2, 2, fewest - 2), rtol=1e-2
        )


class TestInvariances:
    @pytest.mark.parametrize("method", METHODS)
    def test_order_and_names_do_not_matter(self, method):
        y, p, codes, _ = sample([80, 300, 150], [0.6, 1.0, 1.0])
        options = {"method": method, "comparisons": "pairs", "n_draws": 199}
        one = run(y, p, codes, **options)
        rng = np.random.default_rng(5)
        order = rng.permutation(len(y))
        two = run(y[order], p[order], codes[order], **options)
        names = np.array(["z", "m", "a"])[codes]
        three = run(y, p, names, **options)
        for other in (two, three):
            # The largest of three gaps is in units of the spread of its redraws.
            close = 0.3 if method == "equal_amount" else 1e-4
            assert_allclose(other.statistic, one.statistic, rtol=close)
            if method in ("score", "wald"):
                assert_allclose(other.p_value, one.p_value, rtol=1e-4)
        swapped = three.comparisons.set_index(["group", "reference"])
        plain = one.comparisons.set_index(["group", "reference"])
        sign = -1.0 if method == "equal_amount" else 1.0
        assert_allclose(
            swapped.loc[("m", "z"), "statistic"],
            sign * plain.loc[(0, 1), "statistic"],
            rtol=1e-4,
        )

    @pytest.mark.parametrize("method", ["score", "wald", "omnibus", "equal_amount"])
    def test_names_of_clusters_do_not_matter(self, method):
        y, p, codes, clusters = sample([240, 300], rows=3)
        one = run(y, p, codes, clusters, method=method, n_draws=99)
        names = np.random.default_rng(1).permutation(1000)[clusters]
        two = run(
            y, p, codes, [f"patient {c}" for c in names], method=method, n_draws=99
        )
        assert_allclose(one.statistic, two.statistic, rtol=1e-8)

    def test_swapping_the_classes_changes_nothing(self):
        y, p, codes, _ = sample([100, 300], [0.6, 1.0])
        assert_allclose(
            run(y, p, codes).statistic, run(1 - y, 1 - p, codes).statistic, rtol=1e-6
        )

    def test_weights_that_count_are_repetition(self):
        y, p, codes, clusters = sample([100, 300], [0.6, 1.0], rows=2)
        w = np.random.default_rng(0).integers(0, 4, size=len(y))
        rows = np.repeat(np.arange(len(y)), w)
        one = run(y, p, codes, clusters, sample_weight=w)
        two = run(y[rows], p[rows], codes[rows], clusters[rows])
        assert_allclose(one.p_value, two.p_value, rtol=1e-9)
        assert one.n == w.sum()

    def test_seeds(self):
        y, p, codes, _ = sample([100, 300])
        options = {"method": "omnibus", "n_draws": 99, "sensitive_features": codes}
        values = [
            equal_calibration_test(y, p, random_state=s, **options).p_value
            for s in (1, 1, np.random.default_rng(3), np.random.RandomState(3))
        ]
        assert values[0] == values[1]
        assert np.isfinite(values).all()


class TestDraws:
    def test_redrawn_outcomes_have_the_probabilities_and_correlations(self):
        y, p, codes, clusters = sample([900, 600], rows=3)
        problem = problem_of(y, p, codes, clusters)
        redraw = OutcomeRedraw(problem, np.arange(len(y)))
        errors = redraw.errors(400, np.random.default_rng(0))
        spread = np.sqrt(problem.variance)
        assert_allclose(errors.mean(axis=0) / spread, 0.0, atol=5 / np.sqrt(400))
        own, _ = correlations(problem, Cells.of(problem))
        found = []
        for draw in errors:
            drawn = Problem(y, problem.basis, codes, 2, clusters)
            drawn.__dict__["common"] = problem.common
            drawn.__dict__["error"] = draw
            found.append(correlations(drawn, Cells.of(drawn))[0])
        assert_allclose(np.mean(found, axis=0), own, atol=0.02)

    def test_redraws_that_share_patients_between_groups(self):
        y, p, codes, clusters = sample([300, 300], rows=3)
        clusters = np.r_[np.arange(300) // 2, np.arange(300) // 2]
        effect = np.random.default_rng(0).normal(size=150)[clusters]
        y = (effect + np.random.default_rng(1).normal(size=600) > 0).astype(int)
        problem = problem_of(y, p, codes, clusters)
        _, between = correlations(problem, Cells.of(problem))
        errors = OutcomeRedraw(problem, np.arange(600)).errors(
            300, np.random.default_rng(0)
        )
        pair = np.mean(errors[:, :300] * errors[:, 300:]) / 0.25
        assert between > 0.2
        assert_allclose(pair, between, atol=0.08)

    def test_redrawn_p_value_is_near_chi_square_where_rows_are_many(self):
        y, p, codes, _ = sample([1500, 9000])
        problem = problem_of(y, p, codes)
        score = group_score(problem, True)
        found = redrawn_p_value(
            problem, score, 1999, np.random.default_rng(0), omnibus=True
        )
        assert_allclose(found, score.p_value, atol=0.05)

    def test_permutations_recompute_the_statistic(self):
        y, p, codes, _ = sample([100, 200, 150])
        problem = problem_of(y, p, codes)
        rng = np.random.default_rng(0)
        draws = np.stack([codes, rng.permutation(codes), rng.permutation(codes)])
        expected = [
            group_score(Problem(problem.y, problem.basis, c, 3)).statistic
            for c in draws
        ]
        assert_allclose(_GroupSums(problem).statistics(draws), expected, rtol=1e-6)

    def test_strata_keep_equal_scores_together(self):
        y, p, codes, _ = sample([100, 500])
        strata = score_strata(problem_of(y, p, codes))
        assert len(np.unique(strata)) == 10
        strata = score_strata(problem_of(y, np.round(p, 1), codes))
        table = pd.DataFrame({"p": np.round(p, 1), "s": strata})
        assert (table.groupby("p")["s"].nunique() == 1).all()

    @pytest.mark.parametrize("rows", [1, 3])
    def test_redrawn_gaps_against_a_loop(self, rows):
        y, p, codes, clusters = sample([60, 90], rows=rows)
        clusters = clusters if rows > 1 else None
        problem = problem_of(y, p, codes, clusters)
        ce2 = squared_errors(problem, p)
        for g in (0, 1):
            i = codes == g
            c = None if clusters is None else clusters[i]
            expected = squared_calibration_error(y[i], p[i], clusters=c)
            assert_allclose(ce2[g], expected)
        draws = redrawn_squared_errors(problem, p, 4000, np.random.default_rng(0))
        rng = np.random.default_rng(1)
        loops = []
        units = np.arange(len(y)) if clusters is None else clusters
        for _ in range(1500):
            sign = rng.choice([-1.0, 1.0], size=units.max() + 1)[units]
            r = problem.common.fitted - p + sign * problem.error
            loops.append(self.ce2(r, p, codes, units))
        loops = np.array(loops)
        error = loops.std(axis=0)
        assert_allclose(draws.mean(axis=0), loops.mean(axis=0), atol=0.15 * error.max())
        assert_allclose(draws.std(axis=0), error, rtol=0.12)

    def ce2(self, r, p, codes, units):
        out = []
        bins = np.minimum(np.ceil(p * 15).astype(int), 15)
        for g in (0, 1):
            total = 0.0
            for b in np.unique(bins):
                i = np.flatnonzero((bins == b) & (codes == g))
                other = units[i][:, None] != units[i]
                if other.any():
                    pairs = (np.outer(r[i], r[i]) * other).sum() / other.sum()
                    total += len(i) / (codes == g).sum() * pairs
            out.append(total)
        return out

    def test_many_clusters_use_normal_sums(self, monkeypatch):
        y, p, codes, _ = sample([300, 600])
        problem = problem_of(y, p, codes)
        one = redrawn_squared_errors(problem, p, 4000, np.random.default_rng(0))
        monkeypatch.setattr("skcalfair.audit._equal_amount.DRAWN_CLUSTERS", 10)
        two = redrawn_squared_errors(problem, p, 4000, np.random.default_rng(0))
        assert_allclose(one.mean(axis=0), two.mean(axis=0), atol=0.1 * one.std())
        assert_allclose(one.std(axis=0), two.std(axis=0), rtol=0.1)


class TestFamilies:
    def test_holm_and_benjamini_hochberg_by_hand(self):
        p = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
        assert_allclose(adjust(p, "holm"), [0.03, 0.06, np.nan, 0.06, 0.02])
        assert_allclose(adjust(p, "fdr_bh"), [0.02, 0.04, np.nan, 0.04, 0.02])
        assert adjust(np.array([]), "holm").size == 0
        assert adjust(np.array([]), "fdr_bh").size == 0

    @pytest.mark.parametrize("correction", ["holm", "fdr_bh"])
    def test_comparisons(self, correction):
        y, p, codes, _ = sample([200, 300, 250], [0.3, 1.0, 1.0])
        rest = run(y, p, codes, correction=correction)
        table = rest.comparisons
        assert table["reference"].tolist() == ["rest"] * 3
        for g in range(3):
            alone = run(y, p, np.where(codes == g, "a", "b"))
            assert_allclose(table["p_value"][g], alone.p_value)
        raw = adjust(table["p_value"].to_numpy(), correction)
        assert_allclose(table["p_adjusted"], np.maximum(raw, rest.p_value))
        pairs = run(y, p, codes, comparisons="pairs").comparisons
        assert pairs[["group", "reference"]].to_numpy().tolist() == [
            [0, 1],
            [0, 2],
            [1, 2],
        ]
        two = codes != 1
        assert_allclose(pairs["p_value"][1], run(y[two], p[two], codes[two]).p_value)
        assert run(y, p, codes, comparisons=None).comparisons.empty

    def test_no_comparison_is_surer_than_the_global_test(self):
        y, p, codes, _ = sample([60] * 6, seed=4)
        result = run(y, p, codes, correction="fdr_bh")
        assert (result.comparisons["p_adjusted"] >= result.p_value).all()

    def test_two_groups_are_one_comparison(self):
        y, p, codes, _ = sample([100, 300])
        for comparisons in ("rest", "pairs"):
            result = run(y, p, codes, comparisons=comparisons)
            (row,) = result.comparisons.itertuples()
            assert (row.group, row.reference) == (0, 1)
            assert row.p_value == row.p_adjusted == result.p_value

    @pytest.mark.parametrize(
        ("method", "least"), [("omnibus", 300), ("equal_amount", 600)]
    )
    def test_draws_suffice_for_the_family(self, method, least):
        y, p, codes, _ = sample([80] * 6)
        result = run(y, p, codes, method=method, comparisons="pairs", n_draws=50)
        assert result.n_draws == least
        tails = least // 300
        assert tails / (result.n_draws + 1) * 15 < 0.05
        assert run(y, p, codes, n_draws=50).n_draws == 0


class TestRefusals:
    def test_options(self):
        y, p, codes, clusters = sample([100, 300])
        for wrong in (
            {"method": "platt_lr"},
            {"comparisons": "all"},
            {"correction": "bonferroni"},
            {"min_group_size": 0},
            {"n_draws": 1.5},
        ):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                run(y, p, codes, **wrong)
        with pytest.raises(ValueError, match="independent rows"):
            run(y, p, codes, clusters, method="permutation")
        with pytest.raises(ValueError, match="one value per row"):
            run(y, p, codes[:-1])

    @pytest.mark.parametrize("method", ["score", "omnibus", "equal_amount"])
    def test_survey_weights_need_wald(self, method):
        y, p, codes, _ = sample([100, 300])
        w = np.linspace(0.5, 1.5, 400)
        with pytest.raises(ValueError, match="fractional weights"):
            run(y, p, codes, method=method, sample_weight=w)
        assert run(y, p, codes, sample_weight=w).method == "wald"

    def test_small_groups_are_left_out(self):
        y, p, codes, _ = sample([20, 100, 300])
        result = run(y, p, codes)
        assert result.groups["reason"].tolist() == ["fewer than 30 rows", None, None]
        kept = codes > 0
        assert_allclose(result.p_value, run(y[kept], p[kept], codes[kept]).p_value)
        assert result.n == 400
        assert "Left out: 0" in result.summary()
        assert run(y, p, codes, min_group_size=20).groups["reason"].isna().all()

    @pytest.mark.parametrize(
        ("method", "patients"),
        [("score", 9), ("wald", 24), ("equal_amount", 24), ("omnibus", 59)],
    )
    def test_few_clusters(self, method, patients):
        y, p, codes, clusters = sample([5 * patients, 500], rows=5)
        result = run(y, p, codes, clusters, method=method, n_draws=99)
        assert f"fewer than {patients + 1} clusters" in result.groups["reason"][0]
        assert np.isnan(result.p_value)
        assert "fewer than two groups" in result.reason
        assert "Not tested" in result.summary()

    def test_few_outcomes_of_a_class(self):
        y, p, codes, _ = sample([60, 400])
        y[np.flatnonzero(codes == 0)[19:]] = 0
        result = run(y, p, codes, method="equal_amount", n_draws=99)
        assert "fewer than 20 rows of a class" in result.groups["reason"][0]
        assert np.isnan(result.p_value)
        assert run(y, p, codes).groups["reason"].isna().all()

    def test_nothing_to_test(self):
        y, p, codes, _ = sample([100, 300])
        assert "one class" in run(np.zeros_like(y), p, codes).reason
        separable = (p > 0.5).astype(int)
        settled = np.where(separable, 1.0, 0.0)
        assert run(separable, settled, codes).p_value > 0.9
        result = run(separable, settled, codes, method="wald")
        assert "one class" in result.reason
        assert np.isnan(result.p_value)

    def test_few_outcomes_are_redrawn(self):
        y, p, codes, _ = sample([60, 900], level=-4.5)
        result = run(y, p, codes, n_draws=499)
        assert result.n_draws == 499
        assert 500 * result.p_value == pytest.approx(round(500 * result.p_value))

    def test_missing_groups(self):
        y, p, codes, _ = sample([100, 300])
        names = np.array(["a", "b"], dtype=object)[codes]
        names[::7] = None
        with pytest.raises(ValueError, match="missing"):
            run(y, p, names)
        kept = np.arange(len(y)) % 7 != 0
        dropped = run(y, p, names, missing="drop")
        assert_allclose(dropped.p_value, run(y[kept], p[kept], names[kept]).p_value)
        assert run(y, p, names, missing="own_group").groups["group"].tolist() == [
            "a", "b", "missing",
        ]  # fmt: skip


class TestScores:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("kind", ["few", "saturated", "constant", "extreme"])
    def test_any_scores_are_taken(self, method, kind):
        y, p, codes, _ = sample([150, 400])
        x = np.log(p) - np.log1p(-p)
        p = {
            "few": np.round(p, 1),
            "saturated": np.where(p > 0.85, 1.0, np.where(p < 0.15, 0.0, p)),
            "constant": np.full(len(p), 0.4),
            "extreme": expit(8 * x),
        }[kind]
        result = run(y, p, codes, method=method, n_draws=99)
        assert np.isfinite(result.p_value) != (result.reason is not None)
        if method in ("score", "omnibus"):
            assert 0.0 < result.p_value <= 1.0
        if kind == "constant" and method == "score":
            assert result.df == 1

    def test_constant_scores_compare_proportions(self):
        y, _, codes, _ = sample([150, 400], level=0.3)
        p = np.full(len(y), 0.4)
        rates = [y[codes == g].mean() for g in (0, 1)]
        q = y.mean()
        z2 = (rates[0] - rates[1]) ** 2 / (q * (1 - q) * (1 / 150 + 1 / 400))
        assert_allclose(run(y, p, codes).statistic, z2, rtol=1e-4)


class TestResult:
    def test_result(self):
        y, p, codes, clusters = sample([150, 400, 300], [0.3, 1.0, 1.0])
        names = pd.Series(["dark", "light", "medium"])[codes].to_numpy()
        result = run(y, p, names, clusters)
        assert isinstance(result, EqualCalibrationResult)
        assert result.method == "score"
        assert (result.n, result.n_clusters, result.df) == (850, 850, 4)
        text = result.summary()
        assert "not equally calibrated" in text
        assert "dark against rest" in text
        assert "by Holm" in text
        plain = json.loads(json.dumps(result.to_dict()))
        assert plain["p_value"] == result.p_value
        assert plain["comparisons"][0]["group"] == "dark"
        with pytest.raises(AttributeError):
            result.n = 3

    def test_words_without_a_difference(self):
        y, p, codes, _ = sample([150, 400])
        for method in METHODS:
            text = run(y, p, codes, method=method, n_draws=99).summary()
            assert "No difference is shown" in text
        y, p, codes, _ = sample([2000, 2000], [0.4, 1.0])
        text = run(y, p, codes, method="equal_amount").summary()
        assert "amounts of miscalibration differ" in text

    def test_several_features_and_frames(self):
        y, p, codes, _ = sample([200, 400])
        frame = pd.DataFrame({"sex": codes, "site": np.arange(600) % 2})
        result = run(y, np.column_stack([1 - p, p]), frame)
        assert result.groups["group"].tolist() == ["0 & 0", "0 & 1", "1 & 0", "1 & 1"]
        assert_frame_equal(result.groups, run(y, p, frame).groups)


def test_equal_amount_is_blind_to_opposite_miscalibration_and_score_is_not():
    """Slopes such that both groups are off by the same CE2, in opposite directions."""
    y, p, codes, _ = sample([3000, 3000], [0.75, 1.36], seed=1)
    assert run(y, p, codes, method="equal_amount").p_value > 0.05
    assert run(y, p, codes).p_value < 1e-6


def test_omnibus_sees_what_a_line_does_not():
    rng = np.random.default_rng(0)
    x = 1.5 * rng.normal(size=4000)
    codes = np.arange(4000) % 2
    y = rng.random(4000) < expit(x + 0.9 * np.cos(2.5 * x) * (2 * codes - 1))
    assert run(y, expit(x), codes, method="omnibus").p_value < 0.01


@pytest.mark.parametrize("rows", [1, 3])
def test_size_is_held_where_naive_tests_reject(rows):
    """300 audits without a true gap: binomial limits around 5 %."""
    rejected, naive = 0, 0
    for seed in range(300):
        y, p, codes, clusters = sample([75, 600], rows=rows, shift=1.0, seed=seed)
        problem = problem_of(y, p, codes, clusters if rows > 1 else None)
        rejected += group_score(problem).p_value <= 0.05
        if seed < 20:
            naive += not bootstrap_includes_0(y, p, codes, seed)
    # Beyond these lie 0.2 % of binomials with probability .05.
    assert 4 <= rejected <= 28
    assert naive >= 18


def bootstrap_includes_0(y, p, codes, seed):
    """Whether the naive bootstrap interval of an ECE gap includes 0."""
    rng = np.random.default_rng(seed)
    gaps = []
    for _ in range(60):
        values = []
        for g in (0, 1):
            i = rng.choice(np.flatnonzero(codes == g), (codes == g).sum())
            bins = np.minimum((p[i] * 15).astype(int), 14)
            sums = np.bincount(bins, weights=y[i] - p[i], minlength=15)
            values.append(np.abs(sums).sum() / len(i))
        gaps.append(values[0] - values[1])
    low, high = np.quantile(gaps, [0.025, 0.975])
    return low <= 0 <= high
