"""What is simulated to judge the tests: cells, scores and outcomes.

Scores have log-odds 1.5 N(0, 1), one group's shifted where said; the true probability
is a curve of the score. Rows of a patient share part of the score and, by a latent
normal with correlation .5, of the outcome, which leaves every row's probability exact.
"""

from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, expit, ndtr, ndtri

from skcalfair._log_odds import log_odds
from skcalfair._validation import ScoredRows

CURVES = {
    "identity": expit,
    "slope .6": lambda x: expit(0.6 * x),
    "slope .7": lambda x: expit(0.7 * x),
    "slope .75": lambda x: expit(0.75 * x),
    "slope 1.33": lambda x: expit(4.0 * x / 3.0),
    "Beta(2,2)": lambda x: betainc(2.0, 2.0, expit(x)),
    "Beta(3,1)": lambda x: expit(x) ** 3,
    "plateau": lambda x: expit(np.minimum(x, 0.5)),
    "wiggle": lambda x: expit(x + np.sin(2.0 * x)),
    "higher": lambda x: expit(x + 0.5),
}
COMMON = ("identity", "slope .6", "Beta(2,2)", "Beta(3,1)", "plateau")
SIZES = ((75, 1400), (200, 5000), (500, 500))
SPREAD = 1.5

Params = dict[str, Any]


def size_cells() -> dict[str, Params]:
    """The main table: no true gap."""
    out: dict[str, Params] = {}
    for per_patient in (1, 3):
        for sizes in SIZES:
            for curve in COMMON:
                for shift in (0.0, 1.0):
                    name = f"size {sizes[0]}:{sizes[1]}, {curve}, shift {shift:g}, "
                    name += f"{per_patient} a patient"
                    out[name] = _params(sizes, (curve, curve), shift, per_patient)
    return out


def more_of(cells: dict[str, Params]) -> dict[str, Params]:
    """Further audits of cells, of the default only."""
    return {
        "more" + name.removeprefix("size"): params | {"default_only": True}
        for name, params in cells.items()
    }


def hard_cells() -> dict[str, Params]:
    """No true gap, in harder circumstances."""
    out: dict[str, Params] = {}
    for curve, shift in (("slope .6", 1.0), ("Beta(3,1)", 0.0)):
        both, end = (curve, curve), f", {curve}, shift {shift:g}"
        for patients in (5, 10, 15, 20, 25, 40, 60):
            for rows in ("3", "1-10"):
                mean = 3 if rows == "3" else 5.5
                sizes = (int(patients * mean), 2000)
                name = f"hard {patients} patients of {rows} rows" + end
                out[name] = _params(sizes, both, shift, rows, patients=patients)
        for patients in (15, 60):
            name = f"hard {patients} patients of 1-10 rows, correlation .9 : .3" + end
            out[name] = _params(
                (int(patients * 5.5), 2000), both, shift, "1-10", patients=patients,
                correlation=(0.9, 0.3),
            )  # fmt: skip
        for rows in (1, 3):
            name = f"hard patients in both groups, {rows} rows" + end
            if rows > 1:
                out[name] = _params((200, 1000), both, shift, rows, mixed=True)
            for label, options in (
                ("ten distinct scores", {"distinct": 10}),
                ("15 % at 0 and 1", {"saturated": 0.15}),
                ("1 % at 0 and 1", {"saturated": 0.01}),
                ("prevalence 8 %", {"prevalence": 0.08}),
                ("scores x 4, slope / 4", {"stretch": 4.0}),
            ):
                for sizes in ((75, 1400), (500, 500)):
                    name = f"hard {sizes[0]}:{sizes[1]}, {label}{end}, {rows} a patient"
                    out[name] = _params(sizes, both, shift, rows, **options)
        for small in (20, 30, 50, 100):
            for rare in (False, True):
                name = f"hard {small}:1400{', prevalence 8 %' if rare else ''}" + end
                options = {"prevalence": 0.08} if rare else {}
                out[name] = _params((small, 1400), both, shift, 1, **options)
        for sizes in ((75, 1400), (500, 500)):
            name = f"hard {sizes[0]}:{sizes[1]}, survey weights" + end
            out[name] = _params(sizes, both, shift, 1, weights=True)
    for n in (5000, 20000):
        name = f"hard {n}:{n}, plateau, shift 1"
        out[name] = _params((n, n), ("plateau", "plateau"), 1.0, 1)
    return {name: params | {"naive": False} for name, params in out.items()}


def power_cells() -> dict[str, Params]:
    """A true gap; its second group is the identity, or as named."""
    out: dict[str, Params] = {}
    pairs = (
        ("slope .7", "identity"),
        ("slope .75", "slope 1.33"),
        ("wiggle", "identity"),
        ("plateau", "identity"),
        ("higher", "identity"),
    )
    for per_patient in (1, 3):
        for sizes in SIZES:
            for curves in pairs:
                name = f"power {sizes[0]}:{sizes[1]}, {curves[0]} v {curves[1]}, "
                name += f"{per_patient} a patient"
                out[name] = _params(sizes, curves, 0.0, per_patient, power=True)
    return out


def _params(
    sizes: tuple[int, int],
    curves: tuple[str, str],
    shift: float,
    rows: int | str,
    **options: Any,
) -> Params:
    return {"sizes": sizes, "curves": curves, "shift": shift, "rows": rows} | options


# -- data -----------------------------------------------------------------------------


def draw(params: Params, rng: np.random.Generator) -> tuple[ScoredRows, np.ndarray]:
    """Rows of both groups, and the group of each."""
    parts, offset = [], 0
    for k in (0, 1):
        x, clusters = _scores(params, k, rng)
        if not params.get("mixed"):
            clusters = clusters + offset
            offset = clusters.max() + 1
        parts.append((x, clusters))
    codes = np.repeat([0, 1], [len(x) for x, _ in parts])
    x = np.concatenate([x for x, _ in parts])
    clusters = np.concatenate([c for _, c in parts])
    x, seen = _seen(params, x, rng)
    q = np.empty(len(x))
    for k in (0, 1):
        here = codes == k
        stretch = params.get("stretch", 1.0)
        q[here] = CURVES[params["curves"][k]](x[here] - _lowered(params))
        seen[here] = (
            expit(log_odds(seen[here]) * stretch) if stretch != 1 else seen[here]
        )
    if str(params["rows"]) == "1":
        y = rng.random(len(x)) < q
        clusters = None
    else:
        r = np.asarray(params.get("correlation", (0.5, 0.5)))[codes]
        effect = rng.standard_normal(clusters.max() + 1)[clusters]
        noise = rng.standard_normal(len(x))
        y = ndtr(np.sqrt(r) * effect + np.sqrt(1.0 - r) * noise) < q
    weights = None
    if params.get("weights"):
        weights = np.exp(0.7 * rng.standard_normal(len(x)))
    return ScoredRows(y.astype(np.uint8), seen, weights, clusters), codes


def _lowered(params: Params) -> float:
    """Shift of the curves that gives unshifted scores the prevalence asked for."""
    if "prevalence" not in params:
        return 0.0
    return lowered(params["curves"][1], params["prevalence"])


@cache
def lowered(curve: str, prevalence: float) -> float:
    x = SPREAD * ndtri((np.arange(2000) + 0.5) / 2000)
    return brentq(lambda a: CURVES[curve](x - a).mean() - prevalence, -20.0, 20.0)


def _scores(
    params: Params, k: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds and patient of each row of a group."""
    low, _, high = str(params["rows"]).partition("-")
    n = params["sizes"][k]
    if k == 0 and "patients" in params:
        sizes = rng.integers(int(low), int(high or low) + 1, size=params["patients"])
        clusters = np.repeat(np.arange(len(sizes)), sizes)
    else:
        sizes = rng.integers(int(low), int(high or low) + 1, size=n)
        clusters = np.repeat(np.arange(n), sizes)[:n]
    shift = params["shift"] if k == 0 else 0.0
    x = rng.standard_normal(len(clusters))
    if high or int(low) > 1:
        x = (x + rng.standard_normal(clusters.max() + 1)[clusters]) / np.sqrt(2.0)
    return SPREAD * x + shift, clusters


def _seen(
    params: Params, x: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds that settle the outcome, and the score that is seen.

    Where scores are rounded or saturated, the outcome depends on what is seen.
    """
    if "distinct" in params:
        edges = np.linspace(-3.0, 3.0, params["distinct"] - 1)
        middles = np.linspace(-3.4, 3.4, params["distinct"])
        x = middles[np.searchsorted(edges, x)]
        return x, expit(x)
    p = expit(x)
    if "saturated" in params:
        share = params["saturated"] / 2.0
        low, high = -SPREAD * 1.0, SPREAD * 1.0
        top, bottom = np.quantile(x, [1.0 - share, share])
        high, low = max(high, top), min(low, bottom)
        p = np.where(x > high, 1.0, np.where(x < low, 0.0, p))
        x = np.clip(x, low, high)
    return x, p
