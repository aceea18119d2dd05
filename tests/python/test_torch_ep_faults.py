"""moe_permute.torch.ep: ranks that disagree, wrong arguments, ranks that die or hang."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import ep_faults  # noqa: E402
import ranks  # noqa: E402

# (argument, what the last rank has, how that is spelled, what the others have)
DISAGREEMENTS = [
    ("num_experts", 9, "9", "8"),
    ("top_k", 0, "0", "2"),
    ("hidden_size", 5, "5", "4"),
    ("num_chunks", 2, "2", "1"),
    ("dtype", torch.bfloat16, "torch.bfloat16", "torch.float32"),
    ("probs_dtype", None, "None", "torch.float32"),
    ("form", "all-gather", "all-gather", "all-to-all"),
    ("form", "ring", "one that is not known", "all-to-all"),
]


def test_every_rank_hears_who_disagrees_and_on_what():
    changes = [(name, value) for name, value, *_ in DISAGREEMENTS]
    heard = ranks.run_ranks(ep_faults.disagree_on_each, 3, changes)
    wanted = [
        f"ValueError: {name}: rank 2 has {got}, but rank 0 has {want}, and all ranks must agree"
        for name, _, got, want in DISAGREEMENTS
    ]
    assert heard == [wanted] * 3


def test_experts_of_different_sizes():
    heard = ranks.run_ranks(ep_faults.disagree_on_expert_size, 2)
    message = "ValueError: expert_size: rank 1 has 7, but rank 0 has 6, and all ranks must agree"
    assert heard == [message] * 2


def test_a_rank_outside_the_group():
    heard = ranks.run_ranks(ep_faults.use_a_group_of_others, 2)
    assert heard == ["nothing raised", "ValueError: group: rank 1 of all is no member of it"]


def test_arguments_that_are_wrong_on_every_rank():
    changes = {
        "num_experts: 0, but needs a number from 1 to 2147483647": {"num_experts": 0},
        "num_chunks: -1, but needs a number from 1 to 2147483647": {"num_chunks": -1},
        "form: ring, but needs one of all-gather, all-to-all": {"form": "ring"},
        "dtype: torch.int32, but needs one of torch.float32, torch.float16, torch.bfloat16,"
        " torch.float64": {"dtype": torch.int32},
        "probs_dtype: torch.float64, but dtype is torch.float32: float64 goes with float64 only": {
            "probs_dtype": torch.float64
        },
    }
    (heard,) = ranks.run_ranks(ep_faults.invalid_everywhere, 1, list(changes.values()))
    assert heard == [f"ValueError: {message}" for message in changes]


def test_tensors_that_do_not_fit():
    (heard,) = ranks.run_ranks(ep_faults.invalid_tensors, 1)
    assert heard == [
        "TypeError: indices: torch.float32, but needs torch.int32 or torch.int64",
        "ValueError: indices: shape [3, 1], but needs [T, 2]",
        "ValueError: probs: missing, but probs_dtype is torch.float32",
        "TypeError: probs: torch.float64, but needs torch.float32",
        "ValueError: probs: shape [2, 2], but needs [3, 2]",
        "TypeError: tokens: torch.float16, but needs torch.float32",
        "ValueError: tokens: shape [2, 4], but needs [3, 4]",
        "ValueError: rows: shape [7, 4], but needs [6, 4]",
    ]


def test_a_tensor_that_is_wrong_on_one_rank_is_an_error_on_all():
    first, second, odd = ranks.run_ranks(ep_faults.invalid_on_one, 3)
    recording = (
        "ValueError: rows: rank 2 records no gradients, but rank 0 does, and all ranks must agree"
    )
    assert odd == [
        "ValueError: indices: shape [3, 1], but needs [T, 2]",
        "ValueError: tokens: shape [2, 4], but needs [3, 4]",
        "TypeError: rows: torch.float64, but needs torch.float32",
        recording,
    ]
    elsewhere = "ValueError: {}: invalid on rank 2, whose own error says why"
    names = "indices, probs", "tokens", "rows"
    assert first == second == [*map(elsewhere.format, names), recording]


def test_gradients_that_one_rank_alone_wants_or_does_not():
    ranks.run_ranks(ep_faults.want_different_gradients, 3)


@pytest.mark.parametrize("form", ["all-gather", "all-to-all"])
def test_a_rank_that_dies_is_an_error_for_the_others(form):
    timeout = 30
    results = ranks.run_ranks(
        ep_faults.lose_a_rank, 4, form, 3, dies={3}, collective_seconds=timeout
    )
    for step, seconds, message in results[:3]:
        # The step in which it died is the last that anybody could begin.
        assert step == 3 and seconds < 2 * timeout and message


def test_a_rank_that_hangs_is_an_error_for_the_others():
    timeout = 5
    *results, stopped = ranks.run_ranks(
        ep_faults.stop_a_rank, 3, stops={2}, collective_seconds=timeout
    )
    assert stopped is None
    for seconds, message in results:
        assert seconds < 10 * timeout and message
