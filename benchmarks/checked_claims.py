"""The claims of both studies, checked: tables, figures and the page of the guide.

Computes what the page ``doc/user_guide/checked_claims.rst`` says, keeps the tables in
``doc/benchmarks/checked_claims`` and the figures in ``doc/images``, and fills the
numbers into the text of ``_claims_page.rst``. The readers' claims need the ECG data
(`skcalfair.datasets.fetch_ecg_readers`). Run with ``python benchmarks/checked_claims.py
[--only 1 2 3 4 page]``; ``page`` only fills the text with the tables that are kept.
"""

import argparse
import time

import _claims_dominance
import _claims_groups
import _claims_readers
import _claims_synthetic
import matplotlib as mpl
import pandas as pd
from _claims_tables import PAGE, Tables, keep, rendered
from threadpoolctl import threadpool_limits

CLAIMS = {
    "1": _claims_synthetic,
    "2": _claims_groups,
    "3": _claims_dominance,
    "4": _claims_readers,
}


def setup() -> Tables:
    """The sizes of the simulations, as the page quotes them."""
    sizes = {
        "rows": _claims_synthetic.N_ROWS,
        "splits": _claims_synthetic.N_SPLITS,
        "data sets": _claims_synthetic.N_SETS,
        "rows of a data set": _claims_synthetic.SET_ROWS,
        "splits of a data set": _claims_synthetic.SET_SPLITS,
        "cohorts": _claims_groups.N_COHORTS,
        "draws": _claims_groups.N_DRAWS,
        "bootstrap": _claims_readers.N_BOOTSTRAP,
    }
    shown = [f"{size:,}" for size in sizes.values()]
    return {"setup": pd.DataFrame({"what": sizes.keys(), "value": shown})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=[*CLAIMS, "page"], default=list(CLAIMS)
    )
    which = parser.parse_args().only
    mpl.use("Agg")
    with threadpool_limits(1):
        for name, claim in CLAIMS.items():
            if name in which:
                start, cpu = time.perf_counter(), time.process_time()
                keep(claim.run())
                print(
                    f"claim {name}: {time.process_time() - cpu:.0f} s of CPU time, "
                    f"{time.perf_counter() - start:.0f} s",
                    flush=True,
                )
    keep(setup())
    PAGE.write_text(rendered(), encoding="utf-8")


if __name__ == "__main__":
    main()
