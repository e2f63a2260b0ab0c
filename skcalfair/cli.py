"""Command line of skcalfair."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from . import __version__
from . import _files as files
from .audit import _export as audit_export
from .audit import audit_scores
from .datasets import make_skin_tone_cohort
from .dominance import _demo, _export, _reads, _words

DEMO = """\
A simulated cohort in the shape of a study of skin lesions: 1,494 rows, about 20 light
skins for each dark one, 47 % malignant. By construction every score is the true
probability, so both groups are perfectly and equally calibrated (all true calibration
errors are 0).
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="skcalfair")
def main() -> None:
    """Audit the scores of classifiers by group, and against human readers."""


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Say what cannot be used in one line, with exit status 2."""
    try:
        yield
    except ValueError as error:
        message = " ".join(str(error).split())
        click.echo(f"Error: {message}", err=True)
        sys.exit(2)


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
    with _one_line_errors():
        files.check_outputs(scores, options["json_path"], options["csv_path"])
        if demo:
            _run_demo(scores, options)
        else:
            _run(scores, options)


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


_CORRECT = "expected-cost"


@main.command()
@click.argument("reads", required=False, type=click.Path(readable=False))
@click.option("--target", metavar="COL", help="Column with the truth.")
@click.option(
    "--model",
    "models",
    metavar="COL",
    multiple=True,
    help="Column with the scores of a model; repeat it for several.",
)
@click.option(
    "--reader",
    "readers",
    metavar="COL[=THRESHOLD]",
    multiple=True,
    help="Column with the calls of a reader, or with ratings that are positive from a "
    "threshold on; repeat it for several. Empty cells are cases not read.",
)
@click.option("--positive", metavar="LABEL", help="Label that counts as positive.")
@click.option("--cluster", metavar="COL", help="Column with the patient or cluster.")
@click.option("--weight", metavar="COL", help="Column with sample weights.")
@click.option(
    "--points",
    metavar="POINTS",
    help="Table of published points instead of reads: name, and TP, FN, FP, TN or "
    "sensitivity and specificity.",
)
@click.option(
    "--prevalence",
    "prevalences",
    type=float,
    metavar="P",
    multiple=True,
    help="Assumed prevalence, 0 to 1; repeat it for several.  [default: the sample's]",
)
@click.option(
    "--cost-ratio",
    type=float,
    metavar="C",
    default=1.0,
    show_default=True,
    help="Cost of a false positive over that of a false negative.",
)
@click.option(
    "--bootstrap",
    "n_bootstrap",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Bootstrap samples of the cases.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the bootstrap.",
)
@click.option(
    "--convention",
    type=click.Choice([_CORRECT, "as-published"]),
    default=_CORRECT,
    show_default=True,
    help="Layout of the table; as-published repeats a slip of the study.",
)
@click.option("--json", "json_path", metavar="OUT", help="Write every number as JSON.")
@click.option("--csv", "csv_path", metavar="OUT", help="Write the table as CSV.")
@click.option(
    "--markdown", "markdown_path", metavar="OUT", help="Write the text as Markdown."
)
@click.option("--demo", is_flag=True, help="Show a published example instead.")
def dominance(reads: str | None, demo: bool, **options: Any) -> None:
    """Say who decides better, at which cost and prevalence.

    Prints for every cost-prevalence gradient which model or reader has the least
    expected cost, who is best nowhere, and who decides best at an assumed prevalence
    and cost ratio.

    READS is a CSV, TSV or Parquet file with one row per case, for example:

    \b
      skcalfair dominance reads.csv --target cancer --model score \\
          --reader anna --reader ben=3 --prevalence 0.01
      skcalfair dominance --points published.csv --prevalence 0.1
      skcalfair dominance --demo
    """
    outputs = {key: options.pop(key) for key in list(options) if key.endswith("_path")}
    prevalences, cost_ratio = options.pop("prevalences"), options["cost_ratio"]
    with _one_line_errors():
        files.check_outputs(reads or options["points"], *outputs.values())
        _reads.check_assumptions(prevalences, cost_ratio)
        if demo:
            table, text = _dominance_demo(reads, prevalences, options)
            prevalences, cost_ratio = _demo.PREVALENCES, 1.0
        else:
            table = _dominance_table(reads, options)
            text = _words.describe(table, prevalences, cost_ratio)
        _export.write_files(table, prevalences, cost_ratio, **outputs)
        click.echo(text)


_OF_READS = ("target", "models", "readers", "positive", "cluster", "weight")


def _dominance_demo(
    reads: str | None, prevalences: tuple[float, ...], options: dict[str, Any]
) -> tuple[Any, str]:
    if reads or any(options[name] for name in (*_OF_READS, "points", "n_bootstrap")):
        raise click.UsageError("--demo brings its own data: leave out file and columns")
    if prevalences or options["cost_ratio"] != 1 or options["convention"] != _CORRECT:
        raise click.UsageError(
            "--demo shows both conventions at its own prevalences and equal costs: "
            "leave out --prevalence, --cost-ratio and --convention"
        )
    return _demo.worked_example(), _demo.demo()


def _dominance_table(reads: str | None, options: dict[str, Any]) -> Any:
    """Table of the reads or the points that were named."""
    params = {
        "cost_ratio": options["cost_ratio"],
        "convention": options["convention"].replace("-", "_"),
    }
    columns = {name: options[name] for name in _OF_READS}
    if options["points"]:
        if reads or any(columns.values()) or options["n_bootstrap"]:
            raise click.UsageError(
                "--points stands for itself: leave out reads, columns and --bootstrap"
            )
        return _reads.points_table(files.read_table(options["points"]), **params)
    if reads is None:
        raise click.UsageError(
            "name a table of reads or --points, or try: skcalfair dominance --demo"
        )
    if not columns["target"] or not (columns["models"] or columns["readers"]):
        raise click.UsageError("missing --target, or any --model or --reader")
    return _reads.fit_reads(
        files.read_table(reads),
        **columns,
        **params,
        n_bootstrap=options["n_bootstrap"],
        random_state=options["seed"],
    )
