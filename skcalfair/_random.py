"""Seeding: one child seed per block of replicates, whatever the caller passes.

scikit-learn's ``check_random_state`` refuses `numpy.random.Generator`; this module
accepts it as well, and hands out independent child seeds so that results do not depend
on how the blocks are spread over workers.
"""

from numbers import Integral
from typing import Any

import numpy as np

# For ``_parameter_constraints`` and ``validate_params``.
RANDOM_STATE_CONSTRAINT: list[Any] = ["random_state", np.random.Generator]

RandomStateLike = int | np.random.Generator | np.random.RandomState | None


def seed_sequence(random_state: RandomStateLike) -> np.random.SeedSequence:
    """Turn int, Generator, RandomState or None into a SeedSequence.

    A Generator or RandomState is advanced by one draw, so two calls with the same
    object give different sequences, as users of scikit-learn expect.
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(2**32, size=4, dtype=np.uint64)
        return np.random.SeedSequence(words.tolist())
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(
                f"random_state must be a non-negative integer; got {random_state}"
            )
        return np.random.SeedSequence(int(random_state))
    raise ValueError(
        "random_state must be an int, a numpy Generator, a numpy RandomState or None; "
        f"got {random_state!r}"
    )


def generator(random_state: RandomStateLike) -> np.random.Generator:
    """Make a Generator from any accepted `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(seed_sequence(random_state))


def child_seeds(random_state: RandomStateLike, n: int) -> list[np.random.SeedSequence]:
    """Spawn `n` independent child seeds."""
    return seed_sequence(random_state).spawn(n)
