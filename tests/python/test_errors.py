"""What is rejected, with which exception, and that its text names the argument."""

import moe_permute as mp
import numpy as np
import pytest

F32, I32 = np.float32, np.int32
ROWS = np.ones((6, 4), F32)
TOKENS = np.ones((3, 4), F32)
INDICES = np.array([[1, 0], [2, 0], [2, 1]], I32)
SORTED = np.array([2, 0, 4, 1, 5, 3], I32)
PROBS = np.full((3, 2), 0.5, F32)


def arguments(operator, **changes):
    """Give arguments of a valid call, changed."""
    valid = {
        "permute": {"tokens": TOKENS, "indices": INDICES, "probs": PROBS},
        "permute_grad": {
            "permuted_tokens_grad": ROWS,
            "sorted_indices": SORTED,
            "top_k": 2,
            "permuted_probs_grad": np.ones(6, F32),
        },
        "unpermute": {"permuted_tokens": ROWS, "sorted_indices": SORTED, "probs": PROBS},
        "unpermute_grad": {
            "tokens_grad": TOKENS,
            "sorted_indices": SORTED,
            "permuted_tokens": ROWS,
            "probs": PROBS,
        },
        "sort_indices": {"indices": INDICES},
    }
    return valid[operator] | changes


def call(operator, **changes):
    return getattr(mp, operator)(**arguments(operator, **changes))


OPERATORS = ["permute", "permute_grad", "unpermute", "unpermute_grad", "sort_indices"]
ARRAYS = [
    (operator, name, value)
    for operator in OPERATORS
    for name, value in arguments(operator).items()
    if isinstance(value, np.ndarray)
]
OPTIONAL = {"probs", "permuted_probs_grad", "permuted_tokens"}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_arguments_that_others_change_are_valid(operator):
    call(operator)


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
@pytest.mark.parametrize("mask", [False, True])
def test_masks_are_not_lost_in_silence(operator, name, value, mask):
    masked = np.ma.masked_array(value, mask=mask)
    with pytest.raises(TypeError, match=rf"^{name}: a numpy.ma.MaskedArray.*give filled"):
        call(operator, **{name: masked})
    call(operator, **{name: masked.filled(0)})


def test_outputs_have_no_mask():
    out = np.ma.masked_array(np.empty_like(TOKENS), mask=False)
    with pytest.raises(TypeError, match=r"^out: a numpy.ma.MaskedArray"):
        mp.unpermute(ROWS, SORTED, PROBS, out=out)


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
@pytest.mark.parametrize("wrong", [[[1, 2]], "text", 1.5, object(), {}, b"bytes", np.float32])
def test_what_is_no_array(operator, name, value, wrong):
    with pytest.raises(TypeError, match=rf"^{name}: .*needs"):
        call(operator, **{name: wrong})


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "u8", "c8", "O", "S4", "M8[s]", ">f4", ">i4"])
def test_dtypes_that_nothing_has(operator, name, value, dtype):
    wrong = np.zeros(value.shape, dtype)
    with pytest.raises(TypeError, match=rf"^{name}: dtype .*, but needs"):
        call(operator, **{name: wrong})


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
def test_floats_for_indices_and_indices_for_floats(operator, name, value):
    dtype = np.int32 if value.dtype.kind == "f" else np.float32
    with pytest.raises(TypeError, match=rf"^{name}: dtype {np.dtype(dtype)}, but needs"):
        call(operator, **{name: value.astype(dtype)})


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
def test_missing(operator, name, value):
    if name in OPTIONAL and (operator, name) != ("unpermute", "permuted_tokens"):
        top_k = {"top_k": 2} if operator.startswith("unpermute") else {}
        call(operator, **{name: None}, **top_k)
        return
    with pytest.raises(TypeError, match=rf"^{name}: a NoneType, but needs"):
        call(operator, **{name: None})


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
def test_number_of_dimensions(operator, name, value):
    with pytest.raises(ValueError, match=rf"^{name}: .*3 dimensions|^{name}: .*needs"):
        call(operator, **{name: np.zeros((2, 2, 2), value.dtype)})
    with pytest.raises(ValueError, match=rf"^{name}: "):
        call(operator, **{name: np.zeros((), value.dtype)})
    with pytest.raises(ValueError, match=rf"^{name}: "):
        call(operator, **{name: np.zeros((1,) * 40, value.dtype)})


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
def test_negative_strides(operator, name, value):
    with pytest.raises(ValueError, match=rf"^{name}: .*stride"):
        call(operator, **{name: value[::-1]})


@pytest.mark.parametrize(("operator", "name", "value"), ARRAYS)
def test_strides_between_elements(operator, name, value):
    record = np.zeros(value.shape, [("gap", "u1"), ("value", value.dtype)])
    with pytest.raises(ValueError, match=rf"^{name}: a stride of .* bytes"):
        call(operator, **{name: record["value"]})


WRONG = [
    ("permute", {"tokens": ROWS}, ValueError, "indices|tokens"),
    ("permute", {"probs": np.ones((3, 3), F32)}, ValueError, "probs"),
    ("permute", {"probs": PROBS.astype(np.float64)}, ValueError, "probs"),
    ("permute", {"ep_range": (2, 7)}, ValueError, "ep_range"),
    ("permute", {"ep_range": (-1, 2)}, ValueError, "ep_range"),
    ("permute", {"ep_range": (3, 2)}, ValueError, "ep_range"),
    ("permute", {"ep_range": (-(2**63), 2**63 - 1)}, ValueError, "ep_range"),
    ("permute", {"ep_range": (0, 2**70)}, ValueError, "ep_range"),
    ("permute", {"ep_range": (0, 10**5000)}, ValueError, "ep_range"),
    ("permute", {"ep_range": (0,)}, ValueError, "ep_range"),
    ("permute", {"ep_range": (0, 1, 2)}, ValueError, "ep_range"),
    ("permute", {"ep_range": 5}, TypeError, "ep_range"),
    ("permute", {"ep_range": "12"}, TypeError, "ep_range"),
    ("permute", {"ep_range": {0, 1}}, TypeError, "ep_range"),
    ("permute", {"ep_range": {"a": 0, "b": 1}}, TypeError, "ep_range"),
    ("permute", {"ep_range": (0.0, 1.0)}, TypeError, "ep_range"),
    ("permute", {"ep_range": (False, True)}, TypeError, "ep_range"),
    ("permute", {"ep_range": np.array([0.0, 1.0])}, TypeError, "ep_range"),
    ("permute", {"ep_range": np.array(3)}, TypeError, "ep_range"),
    ("permute", {"ep_range": (None, 2)}, TypeError, "ep_range"),
    ("permute", {"num_experts": -1}, ValueError, "num_experts"),
    ("permute", {"num_experts": 2**31 + 1}, ValueError, "num_experts"),
    ("permute", {"num_experts": 2**64}, ValueError, "num_experts"),
    ("permute", {"num_experts": 2.0}, TypeError, "num_experts"),
    ("permute", {"out": (None, None)}, ValueError, "out"),
    ("permute", {"out": [None, None, None]}, TypeError, "out"),
    ("permute", {"out": ROWS}, TypeError, "out"),
    ("permute", {"out": (None, np.zeros(6, np.int16), None)}, TypeError, r"out\[1\]"),
    ("permute", {"out": (None, np.zeros(6, F32), None)}, ValueError, r"out\[1\]"),
    ("permute", {"out": (None, np.zeros(5, I32), None)}, ValueError, r"out\[1\]"),
    ("permute", {"out": ("text", None, None)}, TypeError, r"out\[0\]"),
    ("permute", {"out": (np.zeros((6, 4)), None, None)}, ValueError, r"out\[0\]"),
    ("permute", {"out": (np.zeros((6, 8), F32)[:, ::2], None, None)}, ValueError, r"out\[0\]"),
    ("permute", {"out": (np.zeros((6, 5), F32), None, None)}, ValueError, r"out\[0\]"),
    ("permute", {"probs": None, "out": (None, None, np.zeros(6, F32))}, ValueError, r"out\[2\]"),
    (
        "permute",
        {"ep_range": (1, 5), "out": (np.zeros((3, 4), F32), None, None)},
        ValueError,
        r"out\[0\]",
    ),
    ("permute_grad", {"top_k": 0}, ValueError, "top_k"),
    ("permute_grad", {"top_k": -2}, ValueError, "top_k"),
    ("permute_grad", {"top_k": 4}, ValueError, "sorted_indices"),
    ("permute_grad", {"top_k": 2**63}, ValueError, "top_k"),
    ("permute_grad", {"top_k": -(2**63) - 1}, ValueError, "top_k"),
    ("permute_grad", {"top_k": True}, TypeError, "top_k"),
    ("permute_grad", {"top_k": None}, TypeError, "top_k"),
    ("permute_grad", {"top_k": 2.0}, TypeError, "top_k"),
    (
        "permute_grad",
        {"ep_range": (0, 6), "permuted_tokens_grad": ROWS[:5]},
        ValueError,
        "permuted_tokens_grad",
    ),
    ("permute_grad", {"permuted_probs_grad": np.ones(5, F32)}, ValueError, "permuted_probs_grad"),
    ("permute_grad", {"out": (np.zeros((3, 4), np.float16), None)}, ValueError, r"out\[0\]"),
    ("permute_grad", {"out": (None, np.zeros((3, 3), F32))}, ValueError, r"out\[1\]"),
    ("unpermute", {"probs": np.ones((2, 2), F32)}, ValueError, "probs"),
    ("unpermute", {"probs": np.ones((3, 0), F32)}, ValueError, "top_k|probs"),
    ("unpermute", {"ep_range": (0, 7)}, ValueError, "ep_range"),
    ("unpermute", {"out": np.zeros((3, 5), F32)}, ValueError, "out"),
    ("unpermute", {"out": (None, None)}, ValueError, "out"),
    ("unpermute", {"out": [np.zeros((3, 4), F32)]}, TypeError, "out"),
    ("unpermute_grad", {"tokens_grad": np.ones((4, 4), F32)}, ValueError, "tokens_grad"),
    ("unpermute_grad", {"permuted_tokens": np.ones((6, 3), F32)}, ValueError, "permuted_tokens"),
    ("unpermute_grad", {"permuted_tokens": ROWS.astype("f2")}, ValueError, "permuted_tokens"),
    (
        "unpermute_grad",
        {"permuted_tokens": None, "out": (None, np.zeros((3, 2), F32))},
        ValueError,
        "permuted_tokens",
    ),
    (
        "unpermute_grad",
        {"probs": None, "top_k": 2, "out": (None, np.zeros((3, 2), F32))},
        ValueError,
        r"out\[1\]",
    ),
    ("sort_indices", {"num_experts": 3, "out": (None, np.zeros(4, I32))}, ValueError, r"out\[1\]"),
    ("sort_indices", {"out": (None, np.zeros(4, I32))}, ValueError, "num_experts|out"),
]


@pytest.mark.parametrize(("operator", "changes", "error", "name"), WRONG)
def test_rejected(operator, changes, error, name):
    with pytest.raises(error, match=rf"^({name})(?!\w).*: .") as caught:
        call(operator, **changes)
    assert type(caught.value) is error
    # The library's words for arguments that Python calls otherwise do not show.
    assert "unpermuted_tokens_grad" not in str(caught.value)


@pytest.mark.parametrize("operator", OPERATORS[:4])
def test_outputs_that_must_not_be_written(operator):
    single = operator == "unpermute"
    fresh = call(operator)
    results = [fresh] if single else [r for r in fresh]
    for i, result in enumerate(results):
        locked = result.copy()
        locked.flags.writeable = False
        out = [None] * len(results)
        out[i] = locked
        with pytest.raises(ValueError, match=r"^out.*: read-only"):
            call(operator, out=out[0] if single else tuple(out))
        out[i] = memoryview(locked)
        with pytest.raises(ValueError, match=r"^out.*: read-only"):
            call(operator, out=out[0] if single else tuple(out))


def test_outputs_that_overlap():
    memory = np.ones(100, F32)
    rows = memory[:24].reshape(6, 4)
    with pytest.raises(ValueError, match=r"^out.*overlap"):
        mp.unpermute(rows, SORTED, top_k=2, out=memory[12:24].reshape(3, 4))
    with pytest.raises(ValueError, match=r"^out\[.*overlap"):
        mp.permute_grad(
            ROWS,
            SORTED,
            2,
            np.ones(6, F32),
            out=(memory[:12].reshape(3, 4), memory[11:17].reshape(3, 2)),
        )
    np.testing.assert_array_equal(memory, 1)


def test_counts_and_ranks():
    for error, name, arguments in [
        (TypeError, "tokens_per_expert", (5, 0, 1)),
        (TypeError, "tokens_per_expert", (["a"], 0, 1)),
        (TypeError, "tokens_per_expert", (np.ones(3), 0, 1)),
        (ValueError, "tokens_per_expert", (np.ones((3, 1), int), 0, 1)),
        (ValueError, "tokens_per_expert", ([-1, 1], 0, 1)),
        (ValueError, "tokens_per_expert", ([2**62, 2**62], 0, 2)),
        (TypeError, "expert_begin", ([1, 1], "0", 1)),
        (ValueError, "expert", ([1, 1], 0, 3)),
        (ValueError, "expert", ([1, 1], 2, 1)),
    ]:
        with pytest.raises(error, match=rf"^{name}"):
            mp.expert_range(*arguments)
    with pytest.raises(ValueError, match=r"^rank"):
        mp.ep_range_of_rank([1, 1], 2, 2)
    with pytest.raises(ValueError, match=r"^num_ranks|^rank"):
        mp.ep_range_of_rank([1, 1], 0, 0)


@pytest.mark.parametrize("wrong", [0, -1])
def test_threads(wrong):
    with pytest.raises(ValueError, match=r"^num_threads: "):
        mp.set_num_threads(wrong)
    with pytest.raises(TypeError, match=r"^num_threads: "):
        mp.set_num_threads(1.5)


def test_sizes_that_no_memory_has():
    """By strides of 0 anything can be described; it must fail, and before it is allocated."""
    big = np.lib.stride_tricks.as_strided(np.zeros(1, F32), (2**31, 2**28), (0, 0))
    many = np.lib.stride_tricks.as_strided(np.zeros(1, I32), (2**31, 2**25), (0, 0))
    with pytest.raises((ValueError, MemoryError)):
        mp.permute(big, many)
    with pytest.raises((ValueError, MemoryError)):
        mp.permute(TOKENS, many)
    with pytest.raises((ValueError, MemoryError)):
        mp.unpermute(big, many[0], ep_range=(0, 2**25))
    with pytest.raises((ValueError, MemoryError)):
        mp.permute_grad(big, np.lib.stride_tricks.as_strided(np.zeros(1, I32), (2**40,), (0,)), 1)
