"""Seeding from int, Generator, RandomState or None."""

import numpy as np
import pytest

from skcalfair._random import child_seeds, generator, seed_sequence


@pytest.mark.parametrize("make", [int, np.random.default_rng, np.random.RandomState])
def test_the_same_seed_gives_the_same_sequence(make):
    one, other = (seed_sequence(make(7)).generate_state(4) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_a_new_sequence_each_time(make):
    state = make(7)
    first, second = (seed_sequence(state).generate_state(4) for _ in range(2))
    assert (first != second).any()


def test_none_is_fresh_entropy():
    assert seed_sequence(None).entropy != seed_sequence(None).entropy


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_children_differ_and_do_not_depend_on_their_number():
    few, many = child_seeds(5, 2), child_seeds(5, 9)
    states = [tuple(seed.generate_state(4)) for seed in many]
    assert len(set(states)) == 9
    assert [tuple(seed.generate_state(4)) for seed in few] == states[:2]


@pytest.mark.parametrize("bad", [-1, 1.5, "seed", True])
def test_anything_else_is_refused(bad):
    with pytest.raises(ValueError, match="random_state must be"):
        seed_sequence(bad)
