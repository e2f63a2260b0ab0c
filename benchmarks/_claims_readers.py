"""Claim 4: where human readers beat the network on the ECG reader study."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _claims_tables import IMAGES, Tables, number, p_value, significant
from scipy.stats import binomtest
from tqdm import tqdm

from skcalfair.datasets import fetch_ecg_readers
from skcalfair.dominance import DominanceTable

CARDIOLOGISTS = ["cardiologist1", "cardiologist2"]
SETS = {"all readers": [], "without cardiologists": CARDIOLOGISTS}
# Cost of a false alarm over that of a miss, at the prevalence of the sample.
COST_RATIOS = {"1": 1.0, "1/10": 0.1}
NETWORK = "DNN"
N_BOOTSTRAP = 1000
Fits = dict[tuple[str, str], DominanceTable]


def fits(ecg: Any, n_bootstrap: int = N_BOOTSTRAP) -> Fits:
    """A dominance table for each set of readers and each diagnosis."""
    jobs = [(name, diagnosis) for name in SETS for diagnosis in ecg.diagnoses]
    found = {}
    for name, diagnosis in tqdm(jobs, desc="reader study", disable=None):
        calls = {
            reader: table[diagnosis]
            for reader, table in ecg.readers.items()
            if reader not in SETS[name]
        }
        X = pd.DataFrame({NETWORK: ecg.scores[diagnosis], **calls})
        found[name, diagnosis] = DominanceTable(
            n_bootstrap=n_bootstrap, cross_fit=n_bootstrap > 0, random_state=0
        ).fit(X, ecg.truth[diagnosis])
    return found


def dominance_rows(found: Fits) -> pd.DataFrame:
    """Every row of every table, with the Fieller set of the gradient it begins at."""
    rows = []
    for (name, diagnosis), table in found.items():
        breaks = table.breakpoints_.set_index("cpg")["fieller"]
        for row in table.table_.itertuples():
            begins = row.cpg_from > 0
            rows.append(
                {
                    "readers": name,
                    "diagnosis": diagnosis,
                    "owner": row.owner.replace("_", " "),
                    "CPG from": significant(row.cpg_from),
                    "CPG to": significant(row.cpg_to),
                    "95 % Fieller set of its beginning": (
                        breaks[row.cpg_from].replace("inf", "infinity")
                        if begins
                        else ""
                    ),
                    "sensitivity": number(row.sensitivity_from),
                    "specificity": number(row.specificity_from, 4),
                }
            )
    shown = pd.DataFrame(rows)
    # The network can own two ranges of one table.
    repeated = shown.groupby(["readers", "diagnosis", "owner"]).cumcount()
    shown["owner"] += np.where(repeated > 0, " (again)", "")
    return shown


def nearest(table: pd.DataFrame, cpg: float) -> pd.DataFrame:
    """The rows of a table by gradient that are nearest to one, as a ratio."""
    distance = np.abs(np.log(table["cpg"] / cpg))
    return table[distance == distance.min()]


def cost_rows(found: Fits, truth: pd.DataFrame) -> pd.DataFrame:
    """At the sample's prevalence: who is best, how surely, and cross-fitted."""
    rows = []
    for (name, diagnosis), table in found.items():
        positive = int(truth[diagnosis].sum())
        for shown, ratio in COST_RATIOS.items():
            decision = table.at(cost_ratio=ratio)
            support = nearest(table.dominance_support_, decision.cpg)
            support = support.set_index("name")["support"]
            (cost,) = nearest(table.cross_fit_, decision.cpg).itertuples()
            network, readers = cost.model_cross_fitted, cost.reader_cross_fitted
            rows.append(
                {
                    "readers": name,
                    "diagnosis": diagnosis,
                    "cost ratio": shown,
                    "positive": str(positive),
                    "CPG": significant(decision.cpg),
                    "best": " = ".join(decision.winners).replace("_", " "),
                    "support of the network": number(support["any model"], 2),
                    "support of any reader": number(support["any reader"], 2),
                    "cost of the network": number(1000 * network, 1),
                    "cost of readers": number(1000 * readers, 1),
                    "lower": "network" if network < readers else "readers",
                }
            )
    return pd.DataFrame(rows)


def error_rows(ecg: Any) -> pd.DataFrame:
    """Errors of each reader against the network's published calls, McNemar exactly."""
    rows = []
    for diagnosis in ecg.diagnoses:
        truth = ecg.truth[diagnosis]
        network = ecg.dnn_calls[diagnosis] != truth
        for reader, calls in ecg.readers.items():
            wrong = calls[diagnosis] != truth
            only_reader = int((wrong & ~network).sum())
            only_network = int((network & ~wrong).sum())
            differ = only_reader + only_network
            p = binomtest(only_network, differ).pvalue if differ else 1.0
            rows.append(
                {
                    "diagnosis": diagnosis,
                    "reader": reader.replace("_", " "),
                    "errors of the network": str(int(network.sum())),
                    "errors of the reader": str(int(wrong.sum())),
                    "network alone wrong": str(only_network),
                    "reader alone wrong": str(only_reader),
                    "McNemar p": p_value(p),
                    "p": p,
                }
            )
    return pd.DataFrame(rows)


def holm(p: np.ndarray) -> np.ndarray:
    """p-values of one family, adjusted by Holm's method."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    factors = len(p) - np.arange(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return adjusted


def summary(costs: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Counts that the page quotes."""
    counted = {}
    for name in SETS:
        for ratio in COST_RATIOS:
            of = costs.query("readers == @name and `cost ratio` == @ratio")
            support = of["support of any reader"].astype(float)
            counted |= {
                f"{name}, {ratio}: readers lower": (of["lower"] == "readers").sum(),
                f"{name}, {ratio}: a reader best": (of["best"] != NETWORK).sum(),
                f"{name}, {ratio}: largest support": number(support.max(), 2),
            }
    better = errors["errors of the reader"].astype(int) < errors[
        "errors of the network"
    ].astype(int)
    cardiologist = errors["reader"].isin(CARDIOLOGISTS)
    adjusted = holm(errors["p"].to_numpy())
    counted |= {
        "comparisons": len(errors),
        "readers with fewer errors": better.sum(),
        "of them cardiologists": (better & cardiologist).sum(),
        "of them others": (better & ~cardiologist).sum(),
        "cardiologists": cardiologist.sum(),
        "others": (~cardiologist).sum(),
        "p below .05, reader better": (better & (errors["p"] < 0.05)).sum(),
        "p below .05, network better": (~better & (errors["p"] < 0.05)).sum(),
        "by Holm, reader better": (better & (adjusted < 0.05)).sum(),
        "by Holm, network better": (~better & (adjusted < 0.05)).sum(),
        "smallest p by Holm": p_value(adjusted.min()),
    }
    return pd.DataFrame({"what": counted.keys(), "value": map(str, counted.values())})


def draw(found: Fits, truth: pd.DataFrame) -> None:
    """Bootstrap support of the network and of any reader, by gradient."""
    diagnoses = list(truth.columns)
    fig, axes = plt.subplots(
        4, 3, figsize=(9.5, 10), sharex=True, sharey=True, layout="constrained"
    )
    styles = {"any model": ("#0072B2", "-"), "any reader": ("#D55E00", "--")}
    for k, ((name, diagnosis), table) in enumerate(found.items()):
        ax = axes.ravel()[k]
        for row in table.table_.itertuples():
            if NETWORK not in row.owners:
                ends = max(row.cpg_from, 1e-3), min(row.cpg_to, 1e3)
                ax.axvspan(*ends, color="#E69F00", alpha=0.25, lw=0)
        for who, (color, ls) in styles.items():
            support = table.dominance_support_.query("name == @who")
            label = "network" if who == "any model" else "any reader"
            ax.plot(support["cpg"], support["support"], color=color, ls=ls, label=label)
        equal = (1 - truth[diagnosis].mean()) / truth[diagnosis].mean()
        ax.axvline(equal, color="0.35", lw=0.8, ls=":", label="equal costs")
        title = f"{diagnosis} ({truth[diagnosis].sum()} positive)"
        ax.set(xscale="log", xlim=(1e-2, 1e3), ylim=(-0.03, 1.03), title=title)
        ax.spines[["top", "right"]].set_visible(False)
        if k % 3 == 0:
            ax.set_ylabel(f"{name}\nbootstrap support")
        if k >= 3 * 3:
            ax.set_xlabel("cost-prevalence gradient")
    assert len(found) == 2 * len(diagnoses)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    handles.append(plt.Rectangle((0, 0), 1, 1, color="#E69F00", alpha=0.25, lw=0))
    labels.append("a reader alone is best in the sample")
    fig.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    fig.savefig(IMAGES / "claims_readers.png", dpi=100)


def run() -> Tables:
    """All tables, and the figure."""
    ecg = fetch_ecg_readers()
    found = fits(ecg)
    costs, errors = cost_rows(found, ecg.truth), error_rows(ecg)
    draw(found, ecg.truth)
    return {
        "readers": dominance_rows(found),
        "reader_costs": costs,
        "reader_errors": errors.drop(columns="p"),
        "reader_summary": summary(costs, errors),
    }
