"""moe_permute.torch.ep on 2, 4 and 8 processes: outputs, gradients and payload."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import ep_cases
import ranks


@pytest.mark.parametrize("num_ranks", [1, 2, 4, 8])
def test_outputs_gradients_and_payload(num_ranks):
    counts = ranks.run_ranks(ep_cases.check_all, num_ranks)
    assert counts == [counts[0]] * num_ranks and counts[0] > 90


def test_both_forms_give_the_same_values():
    ranks.run_ranks(ep_cases.both_forms_agree, 3)
