"""Calibration errors: binned (ECE, MCE, adaptive) and size-robust (CE2, SKCE)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._binning import check_n_bins
from .._sorted_scores import CHUNK, SortedScores
from ._evaluate import pairs, sorted_scores, value_or_warn

Floats = NDArray[np.float64]

# Largest exponent between a score and the reference of its stretch in the kernel sum.
MAX_EXPONENT = 300.0
# Clusters up to this size pair row by row; larger ones by running sums.
SMALL_CLUSTER = 32


# -- kernels ----------------------------------------------------------------------


def expected_error_kernel(
    scores: SortedScores,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
) -> Floats:
    """Expected calibration error."""
    residual = _bin_sums(scores, n_bins, strategy)
    if norm == "l1":
        return np.abs(residual).sum(axis=1) / scores.total
    mass = _bin_mass(scores, n_bins, strategy)
    squares = np.divide(residual**2, mass, out=np.zeros_like(residual), where=mass > 0)
    return np.sqrt(squares.sum(axis=1) / scores.total)


def maximum_error_kernel(
    scores: SortedScores, n_bins: int = 15, strategy: str = "uniform"
) -> Floats:
    """Largest difference of observed and predicted over the bins."""
    residual = _bin_sums(scores, n_bins, strategy)
    mass = _bin_mass(scores, n_bins, strategy)
    gaps = np.divide(
        np.abs(residual), mass, out=np.zeros_like(residual), where=mass > 0
    )
    return gaps.max(axis=1)


def adaptive_error_kernel(
    scores: SortedScores, n_bins: int = 15, norm: str = "l1"
) -> Floats:
    """Expected calibration error over equal-mass bins."""
    return expected_error_kernel(scores, n_bins, "quantile", norm)


def _bin_sums(scores: SortedScores, n_bins: int, strategy: str) -> Floats:
    """Weighted residual of each bin, (n_replicates, n_bins)."""
    if strategy == "uniform":
        return scores.uniform_sums(n_bins)[1]
    return scores.memo(
        ("equal_mass_residual", n_bins),
        lambda: scores.equal_mass_sums(n_bins, scores.residual),
    )


def _bin_mass(scores: SortedScores, n_bins: int, strategy: str) -> Floats:
    """Weight of each bin, (n_replicates, n_bins)."""
    if strategy == "uniform":
        return scores.uniform_sums(n_bins)[0]
    return scores.equal_mass_sums(n_bins, np.ones(len(scores)))


def squared_error_kernel(scores: SortedScores, n_bins: int = 15) -> Floats:
    """Unfloored squared calibration error, a U-statistic within uniform bins."""

    def compute() -> Floats:
        mass, numerator, denominator = squared_error_terms(scores, n_bins)
        terms = np.divide(
            mass * numerator,
            denominator,
            out=np.zeros_like(mass),
            where=denominator > 1e-14 * mass**2,
        )
        return terms.sum(axis=1) / scores.total

    return scores.memo(("squared_error", n_bins), compute)


def squared_error_terms(
    scores: SortedScores, n_bins: int
) -> tuple[Floats, Floats, Floats]:
    """Bin mass, and numerator and denominator of U_b, the highest bin first.

    The denominator is the weight of the pairs that count: 0 in a bin without any.
    """
    mass, residual = scores.uniform_sums(n_bins)
    if scores.clusters is not None:
        own_mass, own_residual = _cluster_squares(scores, n_bins)
        return mass, residual**2 - own_residual, mass**2 - own_mass
    if scores.frequency or scores.weights is None:
        enough = np.where(mass >= 2, mass * (mass - 1.0), 0.0)
        return mass, residual**2 - scores.uniform_squares(n_bins), enough
    r = scores.residual
    own = scores.segment_sums(
        scores.uniform_starts(n_bins),
        [np.ones(len(r)), r * r],
        squared_weights=True,
    )
    return mass, residual**2 - own[..., 1], mass**2 - own[..., 0]


def _cluster_squares(scores: SortedScores, n_bins: int) -> tuple[Floats, Floats]:
    """Per bin, the sums over clusters of squared weight and of squared residual sum."""
    starts = scores.uniform_starts(n_bins)
    bins = np.repeat(np.arange(n_bins), np.diff(np.append(starts, len(scores))))
    order = np.lexsort((scores.clusters, bins))  # type: ignore[arg-type]
    clusters = scores.clusters[order]  # type: ignore[index]
    new = np.diff(bins, prepend=-1).astype(bool) | (np.diff(clusters, prepend=-1) != 0)
    cells = np.flatnonzero(new)
    weights = np.ones((1, len(order))) if scores.weights is None else scores.weights
    weights = weights[:, order]
    mass = np.add.reduceat(weights, cells, axis=1, dtype=np.float64)
    residual = np.add.reduceat(weights * scores.residual[order], cells, axis=1)
    one_hot = (bins[cells][:, np.newaxis] == np.arange(n_bins)).astype(np.float64)
    return mass**2 @ one_hot, residual**2 @ one_hot


def kernel_error_kernel(scores: SortedScores, bandwidth: float = 0.1) -> Floats:
    """Squared kernel calibration error (SKCE) with a Laplacian kernel."""

    def compute() -> Floats:
        out = np.empty(scores.n_replicates)
        step = max(1, CHUNK // len(scores))
        for start in range(0, scores.n_replicates, step):
            rows = slice(start, start + step)
            if scores.weights is None:
                weights = np.ones((1, len(scores)))
            else:
                weights = scores.weights[rows].astype(np.float64)
            out[rows] = _kernel_error(scores, weights, bandwidth)
        return out

    return scores.memo(("kernel_error", bandwidth), compute)


def _kernel_error(scores: SortedScores, weights: Floats, bandwidth: float) -> Floats:
    r = scores.residual
    signed = weights * r
    total = weights.sum(axis=1)
    numerator = laplacian_pair_sums(scores.p, signed, bandwidth)
    if scores.clusters is not None:
        within, own = _within_clusters(scores, signed, weights, bandwidth)
        numerator = numerator - within
        n_pairs = (total**2 - own) / 2.0
    elif scores.frequency:
        # Copies of one row are different rows at distance 0.
        numerator = numerator + ((weights**2 - weights) @ (r * r)) / 2.0
        n_pairs = total * (total - 1.0) / 2.0
    else:
        n_pairs = (total**2 - (weights**2).sum(axis=1)) / 2.0
    out = np.full(len(total), np.nan)
    return np.divide(numerator, n_pairs, out=out, where=n_pairs > 1e-14 * total**2)


def laplacian_pair_sums(p: Floats, values: Floats, bandwidth: float) -> Floats:
    """Sum of v_i v_j exp(-|p_i - p_j| / h) over pairs i < j, by rows of `values`.

    O(n) for sorted p: the kernel factorises along the order, so a running sum of
    v_j exp(-p_j / h) serves all later rows. Stretches of p with a reference of their
    own keep the exponents in range for any bandwidth.
    """
    total = np.zeros(len(values))
    carry = np.zeros(len(values))
    stretch = np.floor((p[0] - p) / (bandwidth * MAX_EXPONENT))
    cuts = np.flatnonzero(np.diff(stretch, prepend=-1.0))
    reference = p[0]
    for start, stop in zip(cuts, np.append(cuts[1:], len(p)), strict=True):
        carry *= np.exp(-(reference - p[start]) / bandwidth)
        reference = p[start]
        decay = np.exp((p[start:stop] - reference) / bandwidth)
        part = values[:, start:stop]
        running = np.cumsum(part / decay, axis=1)
        running += carry[:, np.newaxis]
        before = np.concatenate([carry[:, np.newaxis], running[:, :-1]], axis=1)
        total += (before * (part * decay)).sum(axis=1)
        carry = running[:, -1].copy()
    return total


def _within_clusters(
    scores: SortedScores, signed: Floats, weights: Floats, bandwidth: float
) -> tuple[Floats, Floats]:
    """Pair sums inside clusters, and the sum of squared cluster weights."""
    order = np.argsort(scores.clusters, kind="stable")  # type: ignore[arg-type]
    codes = scores.clusters[order]  # type: ignore[index]
    p, v = scores.p[order], signed[:, order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    sizes = np.diff(np.append(starts, len(codes)))
    own = (np.add.reduceat(weights[:, order], starts, axis=1) ** 2).sum(axis=1)
    total = np.zeros(len(signed))
    small = np.repeat(sizes <= SMALL_CLUSTER, sizes)
    for lag in range(1, min(int(sizes.max()), SMALL_CLUSTER)):
        left = np.flatnonzero((codes[lag:] == codes[:-lag]) & small[lag:])
        kernel = np.exp(-np.abs(p[left] - p[left + lag]) / bandwidth)
        total += (v[:, left] * v[:, left + lag]) @ kernel
    for c in np.flatnonzero(sizes > SMALL_CLUSTER):
        rows = slice(starts[c], starts[c] + sizes[c])
        total += laplacian_pair_sums(p[rows], v[:, rows], bandwidth)
    return total, own


# -- public functions ---------------------------------------------------------------


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {options}; got {value!r}")


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    kind: str = "positive",
    labels: ArrayLike | None = None,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Expected calibration error (ECE) over bins of the score.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]: of the positive class, or `predict_proba` output.
    n_bins : int, default=15
        Number of bins, at least 1.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal mass.
    norm : {"l1", "l2"}, default="l1"
        Weighted mean of absolute differences, or root of the mean of their squares.
    kind : {"positive", "confidence"}, default="positive"
        Ask whether the positive class occurred, or whether the most probable class
        did (the top-label definition, for any number of classes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_prob`; needed when some do not occur in `y_true`.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Error in [0, 1]; lower is better.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    squared_calibration_error : Does not grow as the sample shrinks.
    adaptive_calibration_error : The same over equal-mass bins.

    Notes
    -----
    With bins b of mass W_b, mean prediction conf_b and observed frequency acc_b, ECE is
    the sum of ``W_b / W * |acc_b - conf_b|`` [1]_. A uniform bin is (lo, hi], and 0
    belongs to the first, as in :func:`sklearn.calibration.calibration_curve`.

    ECE is *not* robust to sample size: it is positive for perfectly calibrated scores
    and grows as the sample shrinks (.122 at 100 rows, .017 at 5,000, where the truth
    is 0), so groups of unequal size must not be compared by it.

    References
    ----------
    .. [1] M. P. Naeini, G. Cooper and M. Hauskrecht, "Obtaining well calibrated
       probabilities using Bayesian binning", AAAI 2015.

    Examples
    --------
    >>> from skcalfair.metrics import expected_calibration_error
    >>> expected_calibration_error([1, 0], [0.95, 1.0], n_bins=10)
    0.475
    """
    check_n_bins(n_bins)
    _check_choice("strategy", strategy, ("uniform", "quantile"))
    _check_choice("norm", norm, ("l1", "l2"))
    scores = sorted_scores(
        y_true,
        y_prob,
        kind=kind,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return float(expected_error_kernel(scores, n_bins, strategy, norm)[0])


def maximum_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    kind: str = "positive",
    labels: ArrayLike | None = None,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Maximum calibration error (MCE): the largest difference over the bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]: of the positive class, or `predict_proba` output.
    n_bins : int, default=15
        Number of bins, at least 1.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal mass.
    kind : {"positive", "confidence"}, default="positive"
        Ask whether the positive class occurred, or whether the most probable class
        did (the top-label definition, for any number of classes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_prob`; needed when some do not occur in `y_true`.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Error in [0, 1]; lower is better.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    expected_calibration_error : The mean over the bins.

    Notes
    -----
    ``max_b |acc_b - conf_b|`` over the bins that hold rows [1]_. It is driven by the
    emptiest bin and the least robust to sample size of all.

    References
    ----------
    .. [1] M. P. Naeini, G. Cooper and M. Hauskrecht, "Obtaining well calibrated
       probabilities using Bayesian binning", AAAI 2015.

    Examples
    --------
    >>> from skcalfair.metrics import maximum_calibration_error
    >>> maximum_calibration_error([1, 0, 1], [0.9, 0.3, 0.25])
    0.75
    """
    check_n_bins(n_bins)
    _check_choice("strategy", strategy, ("uniform", "quantile"))
    scores = sorted_scores(
        y_true,
        y_prob,
        kind=kind,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return float(maximum_error_kernel(scores, n_bins, strategy)[0])


def adaptive_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    norm: str = "l1",
    kind: str = "positive",
    labels: ArrayLike | None = None,
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Adaptive calibration error (AdaECE): ECE over bins of equal mass.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]: of the positive class, or `predict_proba` output.
    n_bins : int, default=15
        Number of bins, at least 1.
    norm : {"l1", "l2"}, default="l1"
        Weighted mean of absolute differences, or root of the mean of their squares.
    kind : {"positive", "confidence"}, default="positive"
        Ask whether the positive class occurred, or whether the most probable class
        did (the top-label definition, for any number of classes).
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_prob`; needed when some do not occur in `y_true`.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Error in [0, 1]; lower is better.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    expected_calibration_error : The same over bins of equal width.

    Notes
    -----
    A bin ends where the weighted empirical distribution of the scores first reaches
    k / n_bins; equal scores are never split and empty bins vanish [1]_. Like ECE it
    grows as the sample shrinks.

    References
    ----------
    .. [1] J. Mukhoti, V. Kulharia, A. Sanyal, S. Golodetz, P. Torr and P. Dokania,
       "Calibrating deep neural networks using focal loss", Advances in Neural
       Information Processing Systems 33, 2020.

    Examples
    --------
    >>> from skcalfair.metrics import adaptive_calibration_error
    >>> adaptive_calibration_error([0, 1, 0, 1], [0.1, 0.2, 0.6, 0.8], n_bins=2)
    0.275
    """
    check_n_bins(n_bins)
    _check_choice("norm", norm, ("l1", "l2"))
    scores = sorted_scores(
        y_true,
        y_prob,
        kind=kind,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return float(adaptive_error_kernel(scores, n_bins, norm)[0])


def squared_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    clusters: ArrayLike | None = None,
    weights: str = "frequency",
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Squared calibration error (CE2), whose expectation hardly depends on size.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    n_bins : int, default=15
        Number of bins of equal width, at least 1.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient. Pairs within a cluster are left
        out; without this, correlated rows bias the estimate upwards.
    weights : {"frequency", "probability"}, default="frequency"
        Meaning of `sample_weight`: numbers of rows (integers), or survey and
        inverse-probability weights.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Estimate of the mean squared difference of observed and predicted, at most 1;
        lower is better. It is *not* floored at 0: for calibrated scores it scatters
        around 0 and half of the values are negative.

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    kernel_calibration_error : The same idea without bins.
    reliability_curve : The bins, and which of them hold too few rows to count.

    Notes
    -----
    With residuals ``r = y - p``, a bin of n_b rows contributes the mean product of two
    *different* residuals,
    ``U_b = ((sum r)^2 - sum r^2) / (n_b (n_b - 1))``, and
    ``CE2 = sum_b n_b / n * U_b``. Leaving out the squares removes the part that ECE
    owes to the sample size. Bins with fewer than two rows contribute 0.

    Examples
    --------
    >>> from skcalfair.metrics import squared_calibration_error
    >>> round(squared_calibration_error([1, 0, 1, 1], [0.4, 0.4, 0.4, 0.4]), 4)
    0.06
    """
    check_n_bins(n_bins)
    scores = sorted_scores(
        y_true,
        y_prob,
        weights=weights,
        clusters=clusters,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return float(squared_error_kernel(scores, n_bins)[0])


def kernel_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    bandwidth: float = 0.1,
    clusters: ArrayLike | None = None,
    weights: str = "frequency",
    pos_label: object = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Squared kernel calibration error (SKCE): size-robust and without bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; text, bool, {0, 1} or {-1, 1}.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities of the positive class in [0, 1], or `predict_proba` output.
    bandwidth : float, default=0.1
        Scale h of the Laplacian kernel, in units of probability. Keep it the same for
        groups that are to be compared.
    clusters : array-like of shape (n_samples,), default=None
        Cluster of each row, for example the patient. Pairs within a cluster are left
        out.
    weights : {"frequency", "probability"}, default="frequency"
        Meaning of `sample_weight`: numbers of rows (integers), or survey and
        inverse-probability weights.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; needed for text labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative sample weights.

    Returns
    -------
    float
        Unbiased estimate, at most 1; lower is better; not floored at 0. NaN, with a
        warning, for fewer than two rows (or clusters).

    Raises
    ------
    ValueError
        For input that does not fit; the message names the argument.

    See Also
    --------
    squared_calibration_error : The binned form.

    Notes
    -----
    ``2 / (n (n - 1)) * sum_{i<j} r_i r_j exp(-|p_i - p_j| / h)`` with residuals
    ``r = y - p`` [1]_, computed exactly in O(n log n) by sorting and running sums.

    References
    ----------
    .. [1] D. Widmann, F. Lindsten and D. Zachariah, "Calibration tests in multi-class
       classification: a unifying framework", Advances in Neural Information Processing
       Systems 32, 2019.

    Examples
    --------
    >>> from skcalfair.metrics import kernel_calibration_error
    >>> round(kernel_calibration_error([1, 0, 1], [0.4, 0.4, 0.4]), 4)
    -0.04
    """
    if not 0.0 < bandwidth < np.inf:
        raise ValueError(f"bandwidth must be a positive number; got {bandwidth!r}")
    scores = sorted_scores(
        y_true,
        y_prob,
        weights=weights,
        clusters=clusters,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    value = kernel_error_kernel(scores, float(bandwidth))
    return value_or_warn(value, scores, "kernel_calibration_error", pairs)
