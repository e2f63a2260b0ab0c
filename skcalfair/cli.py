"""Command line of skcalfair."""

import sys
from typing import Any

import click

from . import __version__
from . import _files as files
from .audit import _export as audit_export
from .audit import audit_scores
from .datasets import make_skin_tone_cohort

DEMO = """\
A simulated cohort in the shape of a study of skin lesions: 1,494 rows, about 20 light
skins for each dark one, 47 % malignant. By construction every score is the true
probability, so both groups are perfectly and equally calibrated (all true calibration
errors are 0).
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="skcalfair")
def main() -> None:
    """Audit the scores of classifiers, by group."""


@main.command()
@click.argument("scores", required=False, type=click.Path(readable=False))
@click.option("--target", metavar="COL", help="Column with the true outcome.")
@click.option("--score", metavar="COL", help="Column with the probability, 0 to 1.")
@click.option(
    "--group",
    "groups",
    metavar="COL",
    multiple=True,
    help="Column with the group; repeat it to intersect several.",
)
@click.option("--cluster", metavar="COL", help="Column with the patient or cluster.")
@click.option("--run", metavar="COL", help="Column with the run, of several.")
@click.option("--positive", metavar="LABEL", help="Outcome that counts as positive.")
@click.option("--weight", metavar="COL", help="Column with sample weights.")
@click.option(
    "--missing",
    type=click.Choice(["own-group", "drop"]),
    default="own-group",
    show_default=True,
    help="Rows without a group: a group of their own, or left out.",
)
@click.option(
    "--n-resamples",
    type=click.IntRange(min=40),
    default=1000,
    show_default=True,
    help="Subsamples of each larger group.",
)
@click.option(
    "--min-group-size",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Smaller groups are reported as not estimable.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of subsamples and redraws, and of the cohort of --demo.",
)
@click.option("--json", "json_path", metavar="OUT", help="Write every number as JSON.")
@click.option("--csv", "csv_path", metavar="OUT", help="Write the values as CSV.")
@click.option(
    "--demo", is_flag=True, help="Audit a simulated cohort instead of a file."
)
def audit(scores: str | None, demo: bool, **options: Any) -> None:
    """Compare groups on all rows and at equal size.

    Prints discrimination and calibration by group, on all rows and on subsamples as
    large as the smallest group, splits each gap into what sample size explains and what
    remains, with its interval and p-value, and tests whether a score means the same
    risk for everyone.

    SCORES is a CSV, TSV or Parquet file with one row per case, for example:

    \b
      skcalfair audit scores.csv --target malignant --score p --group skin_tone
      skcalfair audit --demo
    """
    try:
        files.check_outputs(scores, options["json_path"], options["csv_path"])
        if demo:
            _run_demo(scores, options)
        else:
            _run(scores, options)
    except ValueError as error:
        message = " ".join(str(error).split())
        click.echo(f"Error: {message}", err=True)
        sys.exit(2)


def _run_demo(scores: str | None, options: dict[str, Any]) -> None:
    named = ("target", "score", "groups", "cluster", "run", "positive", "weight")
    if scores or any(options[name] for name in named):
        raise click.UsageError("--demo brings its own data: leave out file and columns")
    click.echo(DEMO)
    _report(
        make_skin_tone_cohort(random_state=options["seed"]),
        options | {"target": "malignant", "score": "score", "groups": ["skin_tone"]},
    )


def _run(scores: str | None, options: dict[str, Any]) -> None:
    if scores is None:
        raise click.UsageError("name a file of scores, or try: skcalfair audit --demo")
    needed = {"target": "--target", "score": "--score", "groups": "--group"}
    absent = [flag for name, flag in needed.items() if not options[name]]
    if absent:
        raise click.UsageError(f"missing {', '.join(absent)}")
    _report(files.read_table(scores), options)


def _report(frame: Any, options: dict[str, Any]) -> None:
    outcome, positive = files.target(frame, options["target"], options["positive"])
    cluster, weight, run = options["cluster"], options["weight"], options["run"]
    result = audit_scores(
        outcome,
        files.probabilities(frame, options["score"]),
        sensitive_features={c: files.group(frame, c) for c in options["groups"]},
        clusters=None if cluster is None else files.cluster(frame, cluster),
        sample_weight=None if weight is None else files.weights(frame, weight),
        run=None if run is None else files.cluster(frame, run),
        pos_label=positive,
        missing=options["missing"].replace("-", "_"),
        n_resamples=options["n_resamples"],
        min_group_size=options["min_group_size"],
        random_state=options["seed"],
    )
    if options["json_path"]:
        audit_export.write_json(result, options["json_path"])
    if options["csv_path"]:
        audit_export.write_csv(result, options["csv_path"])
    click.echo(result.summary())
