"""ExpertParallelMoE in training: a language model, DistributedDataParallel, checkpoints."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import ep_training  # noqa: E402
import ranks  # noqa: E402


@pytest.mark.parametrize("form", ["all-gather", "all-to-all"])
def test_the_language_model_trains_on_four_ranks_as_on_one(form):
    losses, *_ = ranks.run_ranks(ep_training.train_language_model, 4, form, 50)
    assert max(abs(four - one) / one for four, one in losses) < 1e-5
    assert len(losses) == 50 and losses[-1][1] < losses[0][1] - 1


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_dense_parts_inside_ddp_and_experts_outside(num_ranks):
    ranks.run_ranks(ep_training.train_with_ddp, num_ranks)


@pytest.mark.parametrize("num_ranks", [4, 7])
def test_a_checkpoint_loads_at_another_number_of_ranks(tmp_path, num_ranks):
    folder = tmp_path / "step-1"
    errors = ranks.run_ranks(ep_training.save_and_load, num_ranks, str(folder))
    assert errors == [f"folder: {folder} is there already, but needs a new name"] * num_ranks
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def test_a_rank_that_dies_leaves_no_checkpoint(tmp_path):
    folder = tmp_path / "step-1"
    heard = ranks.run_ranks(ep_training.die_while_saving, 3, str(folder), dies={2})
    assert heard == ["heard", "heard", None]
    assert not folder.exists()


def test_a_rank_that_cannot_write_is_an_error_on_all(tmp_path):
    folder = tmp_path / "step-1"
    heard = ranks.run_ranks(ep_training.fail_to_save, 3, str(folder))
    assert heard == [["ENOTDIR", "ENOSPC", "OddError: no disk"]] * 2 + [
        ["ENOTDIR", "ENOSPC", "no disk"]
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def test_a_checkpoint_of_other_sizes_is_not_loaded(tmp_path):
    (heard,) = ranks.run_ranks(ep_training.load_other_sizes, 1, str(tmp_path / "step-1"))
    assert "size mismatch for up" in heard and "size mismatch for router.weight" not in heard


def test_a_checkpoint_with_a_missing_file_is_not_loaded(tmp_path):
    from moe_permute.torch import MoE
    from moe_permute.torch.ep import load_checkpoint

    model = MoE(4, 4, num_experts=2, top_k=1)
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        load_checkpoint(model, tmp_path)
    torch.save(model.state_dict(), tmp_path / "rank-00001-of-00002.pt")
    with pytest.raises(FileNotFoundError, match=r"rank-00000-of-00002\.pt is missing"):
        load_checkpoint(model, tmp_path)


def test_the_state_dict_names_experts_by_their_number_among_all():
    first, second = ranks.run_ranks(ep_training.state_dict_of_each, 2)
    experts = [{key for key in keys if key.startswith("experts.")} for keys in (first, second)]
    assert experts[0] == {f"experts.{e}.{name}" for e in (0, 1) for name in ("up", "down")}
    assert experts[1] == {f"experts.{e}.{name}" for e in (2, 3, 4) for name in ("up", "down")}
    assert set(first) - experts[0] == set(second) - experts[1] == {"router.weight"}
