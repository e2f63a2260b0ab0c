"""Do tests and intervals hold what they promise? By simulation, resumable.

``python benchmarks/validity.py tests`` prints the table kept in
``doc/benchmarks/validity_tests.txt``, ``intervals`` that of the intervals, and
``runs`` that of the tests over the runs of a study. A benchmark that was stopped goes
on where it was: results are kept, block by block, in the folder.
"""

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["tests", "intervals", "runs"])
    parser.add_argument("--audits", type=int, default=1000, help="audits of a cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--folder", help="where results are kept")
    options = parser.parse_args()
    folder = Path(options.folder or f"validity_{options.part}")
    # Each part imports what it needs only when it is asked for.
    if options.part == "tests":
        import _validity_tests as part
    elif options.part == "runs":
        import _validity_runs as part  # type: ignore[no-redef]
    else:
        import _validity_intervals as part  # type: ignore[no-redef]
    part.main(options.audits, options.jobs, folder)


if __name__ == "__main__":
    main()
