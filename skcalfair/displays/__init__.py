"""Displays: numbers in, a tidy frame and a figure out.

A display stores numbers when it is made; ``frame()`` returns them and ``plot()`` draws
them. Only drawing needs matplotlib (the extra ``plot``).
"""

__all__: list[str] = []
