"""NestedStratifiedGroupKFold: whole patients, even shares, scikit-learn's manners."""

import itertools
import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedGroupKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalfair.model_selection import NestedStratifiedGroupKFold


def skin_lesions(seed):
    """Images of patients in the numbers of the study, with skewed images a patient."""
    rng = np.random.default_rng(seed)
    n, n_patients = 2298, 1373
    share = rng.dirichlet(np.full(n_patients, 0.35))
    patient = np.repeat(
        np.arange(n_patients), 1 + rng.multinomial(n - n_patients, share)
    )
    tones = np.array(["light", "dark", None], dtype=object)
    tone = rng.choice(3, n_patients, p=[1423 / 2298, 71 / 2298, 804 / 2298])
    risk = 0.7 * rng.normal(size=n_patients)[patient] + 0.7 * rng.normal(size=n)
    malignant = (np.argsort(np.argsort(risk)) >= n - 1089).astype(int)  # 47.4 %
    order = rng.permutation(n)
    return pd.DataFrame(
        {"y": malignant, "tone": tones[tone][patient], "patient": patient}
    ).iloc[order]


@pytest.fixture(scope="module")
def cohort():
    return skin_lesions(0)


@pytest.fixture(scope="module")
def triples(cohort):
    cv = NestedStratifiedGroupKFold(random_state=0)
    return list(
        cv.split_nested(
            cohort,
            cohort["y"],
            sensitive_features=cohort["tone"],
            groups=cohort["patient"],
        )
    )


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(1)
    patient = np.repeat(np.arange(40), rng.integers(1, 5, 40))
    n = len(patient)
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "y": rng.integers(0, 2, n),
            "sex": np.array(["f", "m"])[patient % 2],
            "patient": patient,
        }
    )


def pairs(cv, data, **options):
    return list(
        cv.split(
            data,
            data["y"],
            groups=data["patient"],
            sensitive_features=data["sex"],
            **options,
        )
    )


def same(first, second):
    return all(
        np.array_equal(a, b)
        for one, other in zip(first, second, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def test_every_row_is_in_one_part_of_each_run(cohort, triples):
    assert len(triples) == 25
    for parts in triples:
        assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(cohort)))
        assert all((np.diff(part) > 0).all() for part in parts)


def test_no_patient_is_on_two_sides(cohort, triples):
    patient = cohort["patient"].to_numpy()
    for parts in triples:
        for a, b in itertools.combinations(parts, 2):
            assert not np.intersect1d(patient[a], patient[b]).size


def test_every_row_is_tested_once_and_validated_once_in_each_outer_fold(
    cohort, triples
):
    n = len(cohort)
    tested = np.concatenate([test for _, _, test in triples[::5]])
    assert np.array_equal(np.sort(tested), np.arange(n))
    for start in range(0, 25, 5):
        runs = triples[start : start + 5]
        assert all(np.array_equal(test, runs[0][2]) for _, _, test in runs)
        validated = np.concatenate([validation for _, validation, _ in runs])
        rest = np.setdiff1d(np.arange(n), runs[0][2])
        assert np.array_equal(np.sort(validated), rest)


def shares(frame):
    cell = frame["y"].astype(str) + frame["tone"].fillna("unknown")
    return cell.value_counts(normalize=True)


def check_shares(data, parts):
    whole = shares(data)
    assert len(whole) == 6
    for part in parts:
        difference = shares(data.iloc[part]).reindex(whole.index) - whole
        assert difference.abs().max() < 0.02


def test_shares_of_class_and_group_are_within_two_points(cohort, triples):
    for parts in triples:
        check_shares(cohort, parts)
    rare = ((cohort["tone"] == "dark") & (cohort["y"] == 1)).to_numpy()
    expected = rare.sum() / 5
    for _, _, test in triples[::5]:
        assert abs(rare[test].sum() - expected) <= 0.2 * expected + 1


@pytest.mark.parametrize("seed", [1, 2])
def test_shares_in_other_cohorts(seed):
    data = skin_lesions(seed)
    cv = NestedStratifiedGroupKFold(random_state=seed)
    runs = cv.split_nested(
        data, data["y"], sensitive_features=data["tone"], groups=data["patient"]
    )
    for parts in itertools.islice(runs, 5):
        check_shares(data, parts)


def test_a_patient_of_many_rows_costs_no_more_than_its_rows():
    rng = np.random.default_rng(0)
    patient = np.concatenate([np.zeros(120, int), rng.integers(1, 200, 500)])
    data = pd.DataFrame(
        {
            "y": rng.integers(0, 2, 620),
            "tone": np.where(patient % 5, "light", "dark"),
            "patient": patient,
        }
    )
    whole = shares(data)
    largest = data["patient"].value_counts().max()
    cv = NestedStratifiedGroupKFold(random_state=0)
    for _, test in cv.split(
        data, data["y"], groups=data["patient"], sensitive_features=data["tone"]
    ):
        fold = data.iloc[test]
        difference = shares(fold).reindex(whole.index) - whole
        assert difference.abs().max() <= max(0.02, largest / len(fold))


def test_split_and_split_nested_have_the_same_test_folds(small):
    cv = NestedStratifiedGroupKFold(3, 2, random_state=3)
    nested = list(
        cv.split_nested(
            small,
            small["y"],
            sensitive_features=small["sex"],
            groups=small["patient"],
        )
    )
    outer = pairs(cv, small)
    assert cv.get_n_splits() == len(outer) == 3
    assert len(nested) == 6
    for i, (train, test) in enumerate(outer):
        for inner_train, validation, inner_test in nested[2 * i : 2 * i + 2]:
            assert np.array_equal(inner_test, test)
            both = np.sort(np.concatenate([inner_train, validation]))
            assert np.array_equal(both, train)


def test_agrees_with_scikit_learn_on_the_combined_label(small):
    combined = small["y"].astype(str) + small["sex"]
    theirs = StratifiedGroupKFold(4).split(small, combined, small["patient"])
    ours = pairs(NestedStratifiedGroupKFold(4, shuffle=False), small)
    assert same(ours, list(theirs))


@pytest.mark.parametrize("make", [lambda: 7, lambda: np.random.default_rng(7)])
def test_a_seed_reproduces_the_folds(small, make):
    first = pairs(NestedStratifiedGroupKFold(random_state=make()), small)
    second = pairs(NestedStratifiedGroupKFold(random_state=make()), small)
    assert same(first, second)
    other = pairs(NestedStratifiedGroupKFold(random_state=8), small)
    assert not same(first, other)


def test_an_int_repeats_and_a_generator_goes_on(small):
    cv = NestedStratifiedGroupKFold(random_state=7)
    assert same(pairs(cv, small), pairs(cv, small))
    for state in (np.random.default_rng(0), np.random.RandomState(0), None):
        cv = NestedStratifiedGroupKFold(random_state=state)
        assert not same(pairs(cv, small), pairs(cv, small))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("kind", ["numbers", "text", "mixed"])
def test_the_order_of_the_rows_does_not_matter(small, shuffle, kind):
    data = small.copy()
    if kind == "text":
        data["patient"] = "p" + data["patient"].astype(str)
    elif kind == "mixed":
        odd = data["patient"] % 2 == 1
        data["patient"] = (
            data["patient"].astype(object).where(odd, "p" + data["patient"].astype(str))
        )
    cv = NestedStratifiedGroupKFold(
        shuffle=shuffle, random_state=0 if shuffle else None
    )
    order = np.random.default_rng(0).permutation(len(data))
    fold, moved = np.empty(len(data), int), np.empty(len(data), int)
    for i, (_, test) in enumerate(pairs(cv, data)):
        fold[test] = i
    for i, (_, test) in enumerate(pairs(cv, data.iloc[order])):
        moved[order[test]] = i
    assert np.array_equal(fold, moved)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 2), st.integers(0, 1)),
        min_size=30,
        max_size=80,
    ),
    st.integers(0, 3),
)
@pytest.mark.filterwarnings("ignore:class")
def test_any_rows_are_divided_whole(rows, seed):
    patient, y, group = np.array(rows).T
    cv = NestedStratifiedGroupKFold(2, 2, random_state=seed)
    n_patients = len(np.unique(patient))
    runs = cv.split_nested(None, y, sensitive_features=group, groups=patient)
    if n_patients < 2:
        with pytest.raises(ValueError, match="distinct groups"):
            list(runs)
        return
    try:
        found = list(runs)
    except ValueError as error:
        # the largest patient may leave too few for two validation folds
        if "n_inner=2 folds" not in str(error):
            raise
        return
    for parts in found:
        assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(y)))
        sides = [set(patient[part]) for part in parts]
        assert sum(map(len, sides)) == n_patients


def test_without_groups_every_row_stands_by_itself(small):
    cv = NestedStratifiedGroupKFold(5, 4, random_state=0)
    cell = small["y"].astype(str) + small["sex"]
    counts = cell.value_counts()
    runs = list(cv.split_nested(small, small["y"], sensitive_features=small["sex"]))
    assert len(runs) == 20
    for train, validation, test in runs:
        assert len(train) + len(validation) + len(test) == len(small)
        found = cell.iloc[test].value_counts().reindex(counts.index)
        assert (found - counts / 5).abs().max() < 1
        found = cell.iloc[validation].value_counts().reindex(counts.index)
        assert (found - counts / 5).abs().max() < 2


def test_sensitive_features_in_any_container(small):
    cv = NestedStratifiedGroupKFold(3, random_state=0)
    expected = pairs(cv, small)
    for features in (
        small["sex"].tolist(),
        small["sex"].to_numpy(),
        small[["sex"]],
        pl.Series(small["sex"].tolist()),
        pl.DataFrame({"sex": small["sex"].tolist()}),
        {"sex": small["sex"]},
        small["sex"].astype("category"),
    ):
        y, groups = pl.Series(small["y"].tolist()), pl.Series(small["patient"].tolist())
        found = cv.split(pl.DataFrame({"x": small["x"]}), y, groups, features)
        assert same(expected, list(found))


def test_several_features_intersect_and_missing_is_a_stratum(small):
    rng = np.random.default_rng(0)
    old = rng.choice([True, False, None], len(small))
    both = pd.DataFrame({"sex": small["sex"].to_numpy(), "old": old})
    filled = both.astype(object).fillna("missing").to_numpy()
    text = [str(tuple(values)) for values in filled]
    cv = NestedStratifiedGroupKFold(2, shuffle=False)
    first = list(cv.split(small, small["y"], small["patient"], both))
    second = list(cv.split(small, small["y"], small["patient"], text))
    assert same(first, second)


@pytest.mark.parametrize("labels", [["benign", "malignant"], [False, True], [-1, 1]])
def test_labels_of_any_kind(small, labels):
    cv = NestedStratifiedGroupKFold(3, random_state=0)
    expected = pairs(cv, small)
    relabelled = small.assign(y=np.array(labels)[small["y"]])
    assert same(expected, pairs(cv, relabelled))


def test_three_classes(small):
    y = np.arange(len(small)) % 3
    cv = NestedStratifiedGroupKFold(3, random_state=0)
    for _, test in cv.split(small, y, small["patient"]):
        assert set(y[test]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": None}, "y must be given"),
        ({"y": np.linspace(0, 1, 20)}, "y must hold class labels"),
        ({"y": np.tile([0.5, 1.5], 10)}, "y must hold class labels"),
        ({"y": [0, 1] * 9 + [0, np.nan]}, "y contains a missing value"),
        ({"X": np.zeros((19, 1))}, "X has 19 rows and y 20"),
        ({"groups": np.arange(19)}, "groups must have one value per row"),
        ({"groups": [None] + [1] * 19}, "groups contains a missing value at row 0"),
        ({"sensitive_features": ["a"] * 19}, "sensitive_features must have one value"),
        ({"groups": [0, 1, 2, 3] * 5}, "n_outer=5 folds need at least 5 distinct"),
    ],
)
@pytest.mark.filterwarnings("ignore:class")
def test_what_cannot_be_divided_is_refused(options, message):
    given = {"X": np.zeros((20, 1)), "y": [0, 1] * 10, "groups": None} | options
    with pytest.raises(ValueError, match=message):
        next(NestedStratifiedGroupKFold().split(**given))


def test_too_few_rows_or_patients_for_the_inner_folds():
    cv = NestedStratifiedGroupKFold(5, 6)
    y, patient = [0, 1] * 6, np.repeat(np.arange(6), 2)
    with (
        pytest.warns(UserWarning, match="n_inner=6"),
        pytest.raises(ValueError, match="n_inner=6 folds need"),
    ):
        list(cv.split_nested(None, y, groups=patient))
    with pytest.raises(ValueError, match="n_outer=5 folds need at least 5 rows"):
        next(cv.split(None, [0, 1, 0]))


def test_strata_smaller_than_the_number_of_folds():
    age = np.random.default_rng(0).permutation(20) + 0.5
    y = np.array([0, 1, 1, 1] * 5)
    with pytest.warns(UserWarning, match="occurs in 1 rows only .others: 19."):
        folds = list(
            NestedStratifiedGroupKFold(random_state=0).split(None, y, None, age)
        )
    for _, test in folds:
        assert len(test) == 4
        assert y[test].sum() == 3
        assert np.ptp(age[test]) > 7  # not all of one age


def test_warns_of_a_class_in_too_few_patients_of_a_group(small):
    rare = small.assign(sex=np.where(small["patient"] < 3, "x", small["sex"]))
    with pytest.warns(UserWarning, match=r"class 0 in 'x' occurs in [23] groups"):
        folds = pairs(NestedStratifiedGroupKFold(), rare)
    assert len(folds) == 5
    # enough patients to be in each test fold, but not in each validation fold
    y = np.array([0] * 60 + [1] * 5)
    cv = NestedStratifiedGroupKFold()
    assert len(list(cv.split(None, y))) == 5
    with pytest.warns(UserWarning, match="class 1 occurs in 5 rows only"):
        assert len(list(cv.split_nested(None, y))) == 25


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_outer": 1}, "n_outer must be an integer of at least 2; got 1"),
        ({"n_inner": 2.5}, "n_inner must be an integer"),
        ({"n_inner": True}, "n_inner must be an integer"),
        ({"shuffle": 1}, "shuffle must be True or False"),
        ({"shuffle": False, "random_state": 0}, "random_state has no effect"),
    ],
)
def test_parameters_without_sense_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        NestedStratifiedGroupKFold(**parameters)


def test_refuses_a_seed_that_is_none(small):
    with pytest.raises(ValueError, match="random_state must be"):
        pairs(NestedStratifiedGroupKFold(random_state="0"), small)


def test_repr_clone_and_pickle(small):
    cv = NestedStratifiedGroupKFold(4, 3, random_state=1)
    expected = (
        "NestedStratifiedGroupKFold(n_inner=3, n_outer=4, random_state=1, shuffle=True)"
    )
    assert "".join(repr(cv).split()) == expected.replace(" ", "")
    copies = (clone(cv, safe=False), deepcopy(cv), pickle.loads(pickle.dumps(cv)))
    for copy in copies:
        assert same(pairs(cv, small), pairs(copy, small))


def model():
    return make_pipeline(StandardScaler(), LogisticRegression())


def test_in_cross_validate_with_metadata_routing(small):
    cv = NestedStratifiedGroupKFold(4, random_state=0)
    metadata = {"groups": small["patient"], "sensitive_features": small["sex"]}
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            model(),
            small[["x"]],
            small["y"],
            cv=cv,
            params=metadata,
            return_indices=True,
        )
        search = GridSearchCV(
            model(), {"logisticregression__C": [0.1, 1.0]}, cv=cv
        ).fit(small[["x"]], small["y"], **metadata)
        proba = cross_val_predict(
            model(), small[["x"]], small["y"], cv=cv, params=metadata
        )
    assert same(
        zip(found["indices"]["train"], found["indices"]["test"], strict=True),
        pairs(cv, small),
    )
    assert search.n_splits_ == 4
    assert len(proba) == len(small)


def test_requests_can_be_changed(small):
    cv = NestedStratifiedGroupKFold(4, random_state=0)
    requests = cv.get_metadata_routing().split.requests
    assert requests == {"groups": True, "sensitive_features": True}
    with sklearn.config_context(enable_metadata_routing=True):
        cv.set_split_request(sensitive_features="gender")
        metadata = {"groups": small["patient"], "gender": small["sex"]}
        found = cross_validate(
            model(),
            small[["x"]],
            small["y"],
            cv=cv,
            params=metadata,
            return_indices=True,
        )
    assert same(
        zip(found["indices"]["train"], found["indices"]["test"], strict=True),
        pairs(cv, small),
    )


def test_in_cross_validate_without_metadata_routing(small):
    cv = NestedStratifiedGroupKFold(4, random_state=0)
    found = cross_validate(
        model(),
        small[["x"]],
        small["y"],
        groups=small["patient"],
        cv=cv,
        return_indices=True,
    )
    expected = cv.split(small, small["y"], small["patient"])
    assert same(
        zip(found["indices"]["train"], found["indices"]["test"], strict=True),
        list(expected),
    )
