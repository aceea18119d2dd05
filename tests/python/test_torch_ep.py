"""moe_permute.torch.ep on 2, 4 and 8 processes: outputs, gradients and payload."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import ep_cases
import ranks


# Many ranks on few processors wait for each other most of the time: they take every fifth case,
# which still meets each form, dtype, kind of counts and choice, but not all of them together.
@pytest.mark.parametrize(("num_ranks", "every"), [(1, 1), (2, 1), (4, 1), (8, 5)])
def test_outputs_gradients_and_payload(num_ranks, every):
    counts = ranks.run_ranks(ep_cases.check_all, num_ranks, every)
    assert counts == [counts[0]] * num_ranks and counts[0] > 90 / every


def test_both_forms_give_the_same_values():
    ranks.run_ranks(ep_cases.both_forms_agree, 3)
