"""Arrays of more than 2^31 bytes, of which little is touched."""

import moe_permute as mp
import numpy as np
import pytest

NUM_ROWS, HIDDEN_SIZE = 2**20 + 7, 1024  # 4 GiB and some of float32
FAR = [0, 5, 2**19 - 1, 2**19, 2**19 + 3, NUM_ROWS - 1]


@pytest.fixture(scope="module")
def big():
    """Address space for 4 GiB, of which only the rows FAR are ever there."""
    try:
        rows = np.zeros((NUM_ROWS, HIDDEN_SIZE), np.float32)
    except MemoryError:
        pytest.skip("the system promises no 4 GiB of memory")
    assert rows.nbytes > 2**32
    for i, row in enumerate(FAR):
        rows[row] = np.arange(HIDDEN_SIZE) + 1000 * i
    return rows


def test_permute_grad_reads_far_rows(big):
    grad, probs = mp.permute_grad(big, np.array(FAR), 2, big[:, 0])
    np.testing.assert_array_equal(grad, big[FAR].reshape(3, 2, -1).sum(1))
    np.testing.assert_array_equal(probs.reshape(-1), big[FAR, 0])


def test_unpermute_reads_far_rows(big):
    probs = np.array([[1, 2], [0.5, 0], [3, 4]], np.float32)
    got = mp.unpermute(big, np.array(FAR, np.int32), probs)
    picked = big[FAR].reshape(3, 2, -1)
    np.testing.assert_array_equal(got, picked[:, 0] * probs[:, :1] + picked[:, 1] * probs[:, 1:])


def test_permute_reads_far_tokens(big):
    """All tokens but the far ones go to expert 1, and the window is that of expert 0."""
    experts = np.ones(NUM_ROWS, np.int64)
    experts[FAR] = 0
    rows, ranks, _ = mp.permute(big, experts, ep_range=(0, len(FAR)))
    np.testing.assert_array_equal(rows, big[FAR])
    np.testing.assert_array_equal(ranks[FAR], np.arange(len(FAR)))


def test_unpermute_grad_with_a_far_window_of_repeated_rows():
    """Strides of 0: tokens of 4 GiB that are one row."""
    grad = np.broadcast_to(np.arange(HIDDEN_SIZE, dtype=np.float32), (NUM_ROWS, HIDDEN_SIZE))
    assert grad.nbytes > 2**32
    ranks = np.arange(NUM_ROWS, dtype=np.int32)
    window = (NUM_ROWS - 3, NUM_ROWS)
    rows_grad, none = mp.unpermute_grad(grad, ranks, ep_range=window)
    assert none is None
    np.testing.assert_array_equal(rows_grad, grad[:3])
    probs = np.full((NUM_ROWS, 1), 2, np.float32)
    rows_grad, probs_grad = mp.unpermute_grad(grad, ranks, grad[:3], probs, ep_range=window)
    np.testing.assert_array_equal(rows_grad, 2 * grad[:3])
    assert (probs_grad[:-3] == 0).all() and (probs_grad[-3:] > 0).all()


def test_far_columns(big):
    """Strides of more than 2^31 bytes, between two columns."""
    columns = big.reshape(-1)[: 2 * (2**29 + 1)].reshape(2, -1).T[:3]
    assert columns.strides[1] > 2**31
    got = mp.unpermute(columns, np.array([2, 0, 1]))
    np.testing.assert_array_equal(got, columns[[2, 0, 1]])
    rows = mp.permute(columns, np.array([1, 0, 2]))[0]
    np.testing.assert_array_equal(rows, columns[[1, 0, 2]])
