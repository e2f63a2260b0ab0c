"""Text for a terminal: tables, numbers with nouns, lists."""

from collections.abc import Iterable


def shorten(text: str, width: int) -> str:
    """Text cut to a width, with dots in place of what is missing."""
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def plural(n: int, noun: str) -> str:
    """Number and noun: 1 row, 1,494 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def join(names: list[str]) -> str:
    """Names as in a sentence: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def table(rows: list[list[str]], left: Iterable[int] = ()) -> str:
    """Aligned columns under one header row; columns without content are left out."""
    left = set(left)
    width = max(len(row) for row in rows)
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    kept = [j for j in range(width) if any(row[j] for row in padded[1:])]
    sizes = {j: max(len(row[j]) for row in padded) for j in kept}
    lines = []
    for row in padded:
        cells = [
            row[j].ljust(sizes[j]) if j in left else row[j].rjust(sizes[j])
            for j in kept
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)
