"""The README's example prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def block(label):
    """The fenced block that follows an HTML comment."""
    pattern = rf"<!-- {label} -->\n```\w+\n(.*?)```"
    (found,) = re.findall(pattern, README.read_text(encoding="utf-8"), re.DOTALL)
    return found


@pytest.mark.parametrize("example", ["audit", "dominance"])
def test_example_prints_the_output_shown(example):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block(f"example: {example}"), str(README), "exec"), {})
    assert printed.getvalue() == block(f"output: {example}")


def test_figure_exists():
    (path,) = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", README.read_text(encoding="utf-8"))
    assert (README.parent / path).is_file()
