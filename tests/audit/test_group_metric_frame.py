"""GroupMetricFrame in the place of fairlearn's MetricFrame."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.metrics as skm
from fairlearn.metrics import MetricFrame, count, selection_rate
from joblib import parallel_config
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal, assert_series_equal

from skcalfair import metrics as own
from skcalfair.audit import GroupMetricFrame
from skcalfair.metrics._registry import METRICS

SKLEARN = {
    "auc": skm.roc_auc_score,
    "ap": skm.average_precision_score,
    "brier": skm.brier_score_loss,
    "log_loss": skm.log_loss,
}


def rows(n=400, seed=0, labels=(0, 1)):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(2, 2, n), 2)  # ties
    p[:2] = 0.0, 1.0
    return pd.DataFrame(
        {
            "y": np.array(labels)[(rng.random(n) < p).astype(int)],
            "p": p,
            "sex": rng.choice(["female", "male"], n),
            "site": rng.choice([3, 1, 2], n),
            "old": rng.random(n) < 0.3,
            "weight": rng.integers(1, 4, n).astype(float),
        }
    )


def ours(data, metrics, by="sex", controls=None, cls=GroupMetricFrame, **options):
    arguments = {
        "metrics": metrics,
        "y_true": data["y"],
        "y_pred": data["p"],
        "sensitive_features": data[by],
        "control_features": None if controls is None else data[controls],
    }
    return cls(**arguments | options)


def both(data, *args, **options):
    """The same frame by fairlearn and here."""
    return [
        ours(data, *args, cls=c, **options) for c in (MetricFrame, GroupMetricFrame)
    ]


def same(theirs, mine):
    if isinstance(theirs, pd.DataFrame):
        assert_frame_equal(mine, theirs, rtol=1e-12, atol=1e-12)
    elif isinstance(theirs, pd.Series):
        assert_series_equal(mine, theirs, rtol=1e-12, atol=1e-12)
    else:
        assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
        assert type(mine) is type(theirs)


def all_the_same(theirs, mine, *, ci=False):
    suffix = "_ci" if ci else ""
    results = [(f"{name}{suffix}", None) for name in ("overall", "by_group")]
    results += [(f"group_{end}{suffix}", {}) for end in ("min", "max")]
    results += [
        (f"{name}{suffix}", {"method": method})
        for name in ("difference", "ratio")
        for method in ("between_groups", "to_overall")
    ]
    for name, options in results:
        found = [getattr(frame, name) for frame in (theirs, mine)]
        if options is not None:
            found = [method(**options) for method in found]
        for pair in zip(*found, strict=True) if ci else [found]:
            same(*pair)


# -- values -----------------------------------------------------------------------


@pytest.mark.parametrize("controls", [None, ["site"], ["site", "old"]])
@pytest.mark.parametrize("by", ["sex", "site", "old", ["sex"], ["sex", "old"]])
def test_kernels_give_what_fairlearn_gives(by, controls):
    if controls and set(controls) & set(by if isinstance(by, list) else [by]):
        return
    all_the_same(*both(rows(1200), SKLEARN, by, controls))


@pytest.mark.parametrize("metric", SKLEARN.values())
@pytest.mark.parametrize("controls", [None, "site"])
def test_a_single_metric_gives_scalars_and_series(metric, controls):
    all_the_same(*both(rows(), metric, controls=controls))


def test_weights_and_mixed_metrics():
    data = rows()
    mixed = {
        "brier": skm.brier_score_loss,
        "rate": lambda y, p: selection_rate(y, p > 0.5),
        "auc": skm.roc_auc_score,
        "count": count,
        "plain": skm.brier_score_loss,
    }
    params = {"brier": {"sample_weight": data["weight"]}, "auc": {}}
    params["auc"]["sample_weight"] = data["weight"].to_numpy() / 3
    all_the_same(*both(data, mixed, sample_params=params))


@pytest.mark.parametrize("dtype", ["category", "string", "object", "int8"])
def test_features_of_any_type(dtype):
    data = rows()
    if dtype == "int8":
        data["sex"] = (data["sex"] == "male").astype(np.int8)
    else:
        data["sex"] = data["sex"].astype(dtype)
    all_the_same(*both(data, SKLEARN, ["sex", "site"]))
    all_the_same(*both(data, SKLEARN, "sex", "site"))


@pytest.mark.parametrize("convert", [list, np.asarray, lambda c: np.array([c]).T])
def test_features_without_names(convert):
    data = rows()
    given = {
        "sensitive_features": convert(data["site"]),
        "control_features": convert(data["sex"]),
    }
    all_the_same(*both(data, SKLEARN, **given))


def test_several_unnamed_features():
    data = rows()
    columns = data[["sex", "site"]].to_numpy()
    theirs, mine = both(data, SKLEARN, sensitive_features=columns)
    assert mine.sensitive_levels == ["sensitive_feature_0", "sensitive_feature_1"]
    all_the_same(theirs, mine)


def test_what_is_not_a_number():
    def confusion(y, p):
        return skm.confusion_matrix(y, p > 0.5)

    theirs, mine = both(rows(), {"c": confusion, "b": skm.brier_score_loss})
    for group in ("female", "male"):
        assert (mine.by_group["c"][group] == theirs.by_group["c"][group]).all()
    with pytest.raises(ValueError, match="non-scalar"):
        mine.group_max()
    same(theirs.difference(errors="coerce"), mine.difference(errors="coerce"))


def one_call(function):
    """Hide a function, so that it is called and no kernel is looked up."""
    return lambda *args, **kwargs: function(*args, **kwargs)


FUNCTIONS = {
    name: partial(m.function, **dict(m.parameters)) if m.parameters else m.function
    for name, m in METRICS.items()
    if m.function is not None
}


@pytest.mark.parametrize("weighted", [False, True])
def test_both_paths_agree(weighted):
    data = rows(900, seed=3)
    params = {name: {"sample_weight": data["weight"]} for name in FUNCTIONS}
    options = {"sample_params": params if weighted else None}
    calls = {name: one_call(f) for name, f in FUNCTIONS.items()}
    slow, called = both(data, calls, "site", **options)
    assert all(m.built_in is None for m in called._sample.metrics)
    all_the_same(slow, called)
    by_function = ours(data, FUNCTIONS, "site", **options)
    by_name = ours(data, list(FUNCTIONS), "site", **options)
    for fast in (by_function, by_name):
        assert all(m.built_in is not None for m in fast._sample.metrics)
        all_the_same(slow, fast)


def test_parameters_of_a_metric_reach_its_kernel():
    data = rows()
    fold = rows(300, seed=9)
    held_out = partial(
        own.calibration_loss, recalibrate="held_out", y_val=fold["y"], p_val=fold["p"]
    )
    functions = {
        "ece": partial(own.expected_calibration_error, n_bins=5),
        "ce2": partial(own.squared_calibration_error, n_bins=5),
        "held_out": held_out,
        "brier": partial(held_out, score="brier"),
        "cross_fit": partial(
            own.calibration_loss, recalibrate="cross_fit", random_state=0
        ),
        "top": partial(own.expected_calibration_error, kind="confidence"),
    }
    calls = {name: one_call(f) for name, f in functions.items()}
    slow = ours(data, calls, cls=MetricFrame)
    fast = ours(data, functions)
    all_the_same(slow, fast)
    kernels = {m.name for m in fast._sample.metrics if m.built_in is not None}
    assert kernels == {"ece", "ce2", "held_out", "brier"}


def test_rows_that_kernels_cannot_take_are_left_to_the_function():
    data = rows()
    data["p"] = 3 * data["p"] - 1
    all_the_same(*both(data, skm.roc_auc_score))
    with pytest.raises(ValueError, match=r"y_pred must lie in \[0, 1\]"):
        ours(data, "roc_auc")


def test_positive_label():
    data = rows(labels=("benign", "malignant"))
    plain = rows()
    names = ["roc_auc", "brier_score_loss"]
    frame = ours(data, names, pos_label="malignant")
    assert_frame_equal(frame.by_group, ours(plain, names).by_group)
    with pytest.raises(ValueError, match="pos_label"):
        ours(data, "roc_auc")


def test_columns_of_predict_proba():
    data = rows()
    two = np.column_stack([1 - data["p"], data["p"]])
    frame = ours(data, ["log_loss"], y_pred=two)
    group = data["sex"] == "male"
    value = own.log_loss(data["y"][group], data["p"][group])
    assert_allclose(frame.by_group.loc["male", "log_loss"], value, rtol=1e-12)


# -- names and missing values -------------------------------------------------------


def test_features_may_be_called_anything():
    data = rows().rename(columns={"sex": "y_true", "site": "y_pred", "old": "cell"})
    metrics = {"brier": skm.brier_score_loss, "n": count}
    frame = GroupMetricFrame(
        metrics=metrics,
        y_true=data["y"],
        y_pred=data["p"],
        sensitive_features=data[["y_true", "y_pred"]],
        control_features=data["cell"],
        sample_params={"brier": {"sample_weight": data["weight"]}},
    )
    assert frame.by_group.index.names == ["cell", "y_true", "y_pred"]
    grouped = data.groupby(["cell", "y_true", "y_pred"]).size()
    assert_series_equal(
        frame.by_group["n"].astype(int), grouped, check_names=False, check_dtype=False
    )


@pytest.mark.parametrize("kind", ["frame", "series"])
def test_polars_keeps_its_names(kind):
    data = rows()
    if kind == "frame":
        features = pl.DataFrame({"sex": data["sex"].to_list(), "site": data["site"]})
        by = ["sex", "site"]
    else:
        features, by = pl.Series("sex", data["sex"].to_list()), "sex"
    expected = ours(data, SKLEARN, by, cls=MetricFrame)
    all_the_same(expected, ours(data, SKLEARN, sensitive_features=features))


@pytest.mark.parametrize("library", ["pandas", "polars", "list"])
def test_missing_groups(library):
    data = rows()
    values = data["sex"].to_list()
    values[::7] = [None] * len(values[::7])
    given = {
        "pandas": pd.Series(values, name="sex"),
        "polars": pl.Series("sex", values),
        "list": values,
    }[library]
    name = "sensitive_feature_0" if library == "list" else "sex"
    arguments = {
        "metrics": {"brier": skm.brier_score_loss, "n": count},
        "y_true": data["y"],
        "y_pred": data["p"],
        "sensitive_features": given,
        "sample_params": {"brier": {"sample_weight": data["weight"]}},
    }
    with pytest.raises(ValueError, match=f"Feature '{name}' contains missing values"):
        GroupMetricFrame(**arguments)
    own_group = GroupMetricFrame(**arguments, missing="own_group").by_group
    assert own_group.index.tolist() == ["female", "male", "missing"]
    assert own_group.loc["missing", "n"] == len(values[::7])
    kept = np.array([value is not None for value in values])
    dropped = GroupMetricFrame(**arguments, missing="drop")
    assert_frame_equal(dropped.by_group, own_group.drop("missing"))
    assert dropped.overall["n"] == kept.sum()


def test_missing_numbers_get_a_group_beside_the_others():
    data = rows()
    ages = data["site"].astype(float).where(data.index % 5 > 0)
    frame = GroupMetricFrame(
        metrics={"brier": "brier_score_loss"},
        y_true=data["y"],
        y_pred=data["p"],
        sensitive_features={"age": ages, "sex": data["sex"]},
        missing="own_group",
    )
    levels = frame.by_group.index.get_level_values("age").unique().tolist()
    assert levels == [1.0, 2.0, 3.0, "missing"]
    assert np.isfinite(frame.difference()["brier"])


def test_absent_intersections_are_nan_rows():
    data = rows()
    data = data[(data["sex"] == "male") | (data["site"] < 3)].reset_index()
    theirs, mine = both(data, SKLEARN, ["sex", "site"])
    assert mine.by_group.loc[("female", 3)].isna().all()
    all_the_same(theirs, mine)


# -- one class ----------------------------------------------------------------------


def test_a_group_of_one_class_is_never_a_gap_of_zero():
    data = rows()
    data.loc[data["sex"] == "male", "y"] = 0
    frame = ours(data, ["roc_auc", "brier_score_loss"])
    assert np.isnan(frame.by_group.loc["male", "roc_auc"])
    for method in ("between_groups", "to_overall"):
        for found in (frame.difference(method), frame.ratio(method)):
            assert np.isnan(found["roc_auc"])
            assert np.isfinite(found["brier_score_loss"])


def test_one_class_within_a_control_level():
    data = rows(600)
    lone = (data["sex"] == "male") & (data["site"] == 2)
    data.loc[lone, "y"] = 1
    boot = {"n_boot": 5, "ci_quantiles": [0.5], "random_state": 0}
    frame = ours(data, {"auc": "roc_auc"}, controls="site", **boot)
    for method in ("between_groups", "to_overall"):
        for found in (
            frame.difference(method),
            frame.ratio(method),
            frame.difference_ci(method)[0],
            frame.ratio_ci(method)[0],
        ):
            assert found["auc"].isna().tolist() == [False, True, False]


def test_a_single_group_differs_by_nothing():
    data = rows()
    data["sex"] = "female"
    frame = ours(data, {"auc": skm.roc_auc_score})
    assert frame.difference()["auc"] == 0.0
    assert frame.ratio()["auc"] == 1.0


def test_average_precision_of_one_class_is_scikit_learns():
    data = rows()
    data.loc[data["sex"] == "male", "y"] = 1
    theirs, mine = both(data, {"ap": skm.average_precision_score})
    all_the_same(theirs, mine)
    assert np.isnan(ours(data, "average_precision").by_group["male"])


# -- bootstrap ------------------------------------------------------------------------


@pytest.mark.parametrize("controls", [None, "old"])
@pytest.mark.parametrize("seed", [7, np.random.RandomState])
def test_slow_draws_are_fairlearns_number_for_number(controls, seed):
    data = rows(200)
    metrics = {
        "brier": skm.brier_score_loss,
        "rate": lambda y, p: np.mean(p > 0.5),
        "loss": one_call(skm.log_loss),
    }
    arguments = {"n_boot": 8, "ci_quantiles": [0.1, 0.5, 0.9]}
    theirs, mine = (
        ours(
            data,
            metrics,
            controls=controls,
            cls=cls,
            random_state=seed if seed == 7 else seed(3),
            **arguments,
        )
        for cls in (MetricFrame, GroupMetricFrame)
    )
    all_the_same(theirs, mine, ci=True)


def test_slow_draws_of_a_single_function():
    data = rows(200)
    options = {"n_boot": 5, "ci_quantiles": [0.5], "random_state": 1}
    all_the_same(*both(data, one_call(skm.brier_score_loss), **options), ci=True)


def test_fast_draws_are_the_same_in_distribution():
    data = rows(300)
    options = {"n_boot": 300, "ci_quantiles": [0.5], "random_state": 0}
    metrics = {"auc": skm.roc_auc_score, "brier": skm.brier_score_loss}
    fast = ours(data, metrics, **options)
    slow = ours(data, metrics | {"one": lambda y, p: 1.0}, **options)
    for part in ("groups", "overall"):
        a = getattr(fast._replicates, part)
        b = getattr(slow._replicates, part)[..., :2]
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 300)
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4 * error).all()
        assert_allclose(a.std(axis=0), b.std(axis=0), rtol=0.25)


def test_bootstrap_of_clusters_keeps_them_whole():
    data = rows(60)
    patients = np.repeat(np.arange(20), 3)
    data["p"] = patients

    def whole(y, p):
        return float((np.bincount(p.astype(int)) % 3 == 0).all())

    boot = {"n_boot": 20, "ci_quantiles": [0.5], "random_state": 0}
    frame = ours(data, whole, clusters=patients, **boot)
    assert (frame._replicates.overall == 1.0).all()


def test_cluster_bootstrap_is_wider_for_copies():
    data = rows(150).loc[np.repeat(np.arange(150), 4)].reset_index(drop=True)
    options = {"n_boot": 200, "ci_quantiles": [0.1, 0.9], "random_state": 0}
    widths = []
    for clusters in (None, np.repeat(np.arange(150), 4)):
        frame = ours(data, "brier_score_loss", clusters=clusters, **options)
        low, high = frame.overall_ci
        widths.append(high - low)
    assert_allclose(widths[1] / widths[0], 2.0, rtol=0.25)


def test_replicates_do_not_depend_on_workers():
    data = rows(200)
    boot = {"n_boot": 3000, "ci_quantiles": [0.5], "random_state": 0}
    with parallel_config(backend="threading"):
        frames = [
            ours(data, skm.brier_score_loss, n_jobs=n_jobs, **boot) for n_jobs in (1, 2)
        ]
    first, second = (frame._replicates.groups for frame in frames)
    # BLAS may round otherwise in another process.
    assert_allclose(first, second, rtol=1e-12)


# -- pickles and errors ---------------------------------------------------------------


def test_pickles():
    data = rows()
    frame = ours(data, {"brier": skm.brier_score_loss, "f": lambda y, p: 1.0})
    back = pickle.loads(pickle.dumps(frame))
    all_the_same(frame, back)
    with pytest.raises(RuntimeError, match="could not be pickled"):
        _ = back.size_matched
    metrics = {"brier": skm.brier_score_loss, "rate": count}
    frame = ours(data, metrics, n_resamples=40)
    back = pickle.loads(pickle.dumps(frame))
    assert_frame_equal(back.size_matched, frame.size_matched)


def test_dropped_data_is_gone_from_a_pickle():
    data = rows()
    frame = ours(data, {"brier": skm.brier_score_loss})
    table = frame.size_matched
    size = len(pickle.dumps(frame))
    assert frame.drop_data() is frame
    assert len(pickle.dumps(frame)) < size - 8 * len(data)
    assert_frame_equal(frame.size_matched, table)
    with pytest.raises(ValueError, match="drop_data"):
        frame.to_frame()
    assert frame.difference()["brier"] >= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "accuracy"}, "names of built-in metrics; got 'accuracy'"),
        ({"metrics": ["roc_auc", "roc_auc"]}, "two metrics of one name"),
        ({"metrics": [partial(count)]}, "use a dict to name it"),
        ({"sample_params": {"p": 1}}, "sample_params of the built-in metric"),
        ({"size_match": "largest"}, "size_match"),
        ({"match_on": "cases"}, "match_on"),
        ({"n_resamples": 5}, "n_resamples"),
        ({"missing": "keep"}, "missing"),
        ({"clusters": [1, 2]}, "clusters"),
    ],
)
def test_refusals(options, message):
    data = rows(50)
    if "sample_params" in options:
        options = {"sample_params": {"p": data["p"]}}
    with pytest.raises(ValueError, match=message):
        ours(data, **{"metrics": "brier_score_loss"} | options)
