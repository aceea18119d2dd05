"""Whose arrays are taken, and whose come back."""

import array
import sys

import ml_dtypes
import moe_permute as mp
import numpy as np
import pytest
from cases import assert_same_bits

TOKENS = np.arange(12, dtype=np.float32).reshape(4, 3)
INDICES = np.array([[1, 0], [2, 0], [2, 1], [0, 2]], np.int32)
PROBS = np.linspace(0.1, 0.8, 8, dtype=np.float32).reshape(4, 2)
WANTED = mp.permute(TOKENS, INDICES, PROBS)


class Lender:
    """What DLPack makes of an array, and nothing else: no namespace, no buffer."""

    def __init__(self, lent, version=(1, 0), device=(1, 0)):
        self.lent, self.version, self.device = lent, version, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.lent.__dlpack__(**(options if self.version else {}))


class OldLender(Lender):
    """A producer from before DLPack had versions."""

    def __dlpack__(self):
        return self.lent.__dlpack__()


def check(results):
    for result, want in zip(results, WANTED, strict=True):
        assert_same_bits(np.asarray(result), want)


@pytest.mark.parametrize("lend", [memoryview, Lender, OldLender])
def test_anything_that_lends_its_memory(lend):
    results = mp.permute(lend(TOKENS), lend(INDICES), lend(PROBS))
    assert all(type(result) is np.ndarray for result in results)
    check(results)


def test_array_module():
    rows = array.array("d", [1, 2, 3])
    got = mp.unpermute(memoryview(rows).cast("B").cast("d", (3, 1)), array.array("i", [2, 0, 1]))
    np.testing.assert_array_equal(got, [[3], [1], [2]])


@pytest.mark.parametrize("lend", [lambda a: a, memoryview, Lender])
def test_outputs_are_written_in_place(lend):
    out = tuple(np.zeros_like(want) for want in WANTED)
    lent = tuple(lend(array) for array in out)
    results = mp.permute(TOKENS, INDICES, PROBS, out=lent)
    assert all(result is array for result, array in zip(results, lent, strict=True))
    check(out)


def test_read_only_inputs():
    arrays = [a.copy() for a in (TOKENS, INDICES, PROBS)]
    for a in arrays:
        a.flags.writeable = False
    check(mp.permute(*arrays))
    check(mp.permute(*(memoryview(a) for a in arrays)))
    check(mp.permute(*(memoryview(a.tobytes()).cast(a.dtype.char, a.shape) for a in arrays)))


def test_subclasses_of_numpy_arrays_give_plain_ones():
    class Sub(np.ndarray):
        pass

    results = mp.permute(TOKENS.view(Sub), INDICES.view(Sub), PROBS.view(Sub))
    assert all(type(result) is np.ndarray for result in results)
    check(results)


def test_bfloat16_of_ml_dtypes():
    tokens = TOKENS.astype(ml_dtypes.bfloat16)
    rows, sorted_indices, _ = mp.permute(tokens, INDICES)
    assert rows.dtype == ml_dtypes.bfloat16
    assert_same_bits(rows, WANTED[0].astype(ml_dtypes.bfloat16))
    back = mp.unpermute(rows, sorted_indices, np.full((4, 2), 0.5, ml_dtypes.bfloat16))
    assert_same_bits(back, tokens)


def test_all_integer_types_of_eight_bytes():
    for dtype in (np.int64, np.longlong, np.intp):
        check(mp.permute(TOKENS, INDICES.astype(dtype), PROBS))


def test_empty_arrays_of_every_kind():
    rows, sorted_indices, probs = mp.permute(
        np.zeros((0, 5), np.float16), np.zeros((0, 2), np.int64), np.zeros((0, 2), np.float32)
    )
    assert rows.shape == (0, 5) and sorted_indices.shape == (0,) and probs.shape == (0,)
    grad, probs_grad = mp.permute_grad(rows, sorted_indices, 2, probs, ep_range=(0, 0))
    assert grad.shape == (0, 5) and probs_grad.shape == (0, 2)
    nothing = np.zeros((3, 0), np.float32)
    assert mp.permute(nothing, np.zeros((3, 2), np.int32))[0].shape == (6, 0)
    # A rank that received no token: zeros of the right shape.
    grad, probs_grad = mp.permute_grad(
        np.zeros((0, 5), np.float32), np.arange(4), 2, np.zeros(0, np.float32), ep_range=(1, 1)
    )
    np.testing.assert_array_equal(grad, np.zeros((2, 5)))
    np.testing.assert_array_equal(probs_grad, np.zeros((2, 2)))


@pytest.mark.parametrize("make", [tuple, list, np.array, lambda r: np.array(r, np.uint8), range])
def test_ep_range_is_any_pair_of_ints(make):
    pair = range(1, 7)[::5] if make is range else make((1, 6))
    rows = mp.permute(TOKENS, INDICES, ep_range=pair)[0]
    np.testing.assert_array_equal(rows, WANTED[0][1:6])


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, lambda c: np.array(c, np.int32)[::-1][::-1]]
)
def test_counts_are_arrays_or_lists(make):
    counts = make([2, 0, 5, 1])
    assert mp.expert_range(counts, 1, 3) == (2, 7)
    assert mp.ep_range_of_rank(counts, 1, 2) == (2, 8)


def test_counts_are_read_with_their_strides():
    counts = np.array([2, 99, 0, 99, 5, 99, 1, 99], np.int64)
    assert mp.expert_range(counts[::2], 0, 4) == (0, 8)
    assert mp.expert_range(counts[::-2], 0, 2) == (0, 198)


def test_indices_are_checked_on_request():
    with pytest.raises(IndexError, match="slot 1"):
        mp.permute_grad(TOKENS, np.array([0, 9, 1, 2]), 1, check_indices=True)
    out = np.full((4, 3), 7, np.float32)
    with pytest.raises(IndexError):
        mp.unpermute(TOKENS, np.array([0, 0, 1, 2]), out=out, check_indices=True)
    np.testing.assert_array_equal(out, 7)
    with pytest.raises(IndexError):
        mp.unpermute_grad(TOKENS, np.array([0, -1, 1, 2]), check_indices=True)
    with pytest.raises(IndexError):
        mp.sort_indices(np.array([0, 5]), num_experts=5, check_indices=True)
    with pytest.raises(IndexError):
        mp.permute(TOKENS, INDICES, num_experts=2, check_indices=True)
    mp.permute(TOKENS, INDICES, num_experts=3, check_indices=True)


def references(lend):
    tokens, probs = lend(TOKENS.copy()), lend(PROBS.copy())
    before = [sys.getrefcount(a) for a in (tokens, probs, TOKENS, INDICES)]
    for _ in range(100):
        mp.permute(tokens, INDICES, probs)
        with pytest.raises(ValueError):
            mp.permute(tokens, INDICES, probs, ep_range=(0, 99))
        with pytest.raises(TypeError):
            mp.permute(tokens, "no array", probs)
    return before, [sys.getrefcount(a) for a in (tokens, probs, TOKENS, INDICES)]


@pytest.mark.parametrize("lend", [lambda a: a, memoryview, Lender, OldLender])
def test_no_reference_is_lost_or_kept(lend):
    before, after = references(lend)
    assert before == after
