"""The four operators from files against NumPy, with windows in every way to say them."""

import numpy as np
import pytest
import routing
import tensors

T, K, E, H = 13, 3, 8, 10


def case(moe, dtype, seed=0, rank=(1, 4)):
    """All tensors of a case in in.safetensors; returns them with the window."""
    rng = np.random.default_rng(seed)
    indices = routing.make(rng, T, K, E)
    begin, end = routing.rank_window(indices, E, *rank)
    values = lambda *shape: rng.uniform(-1, 1, shape).astype(tensors.FLOATS[dtype])  # noqa: E731
    probs_dtype = np.float64 if dtype == "float64" else np.float32
    c = {
        "tokens": values(T, H),
        "indices": indices,
        "probs": rng.uniform(0.1, 1, (T, K)).astype(probs_dtype),
        "sorted_indices": routing.rows_of(indices),
        "permuted_tokens": values(end - begin, H),
        "permuted_tokens_grad": values(end - begin, H),
        "permuted_probs_grad": rng.uniform(-1, 1, end - begin).astype(probs_dtype),
        "unpermuted_tokens_grad": values(T, H),
    }
    tensors.save(moe.folder / "in.safetensors", **c)
    return c, begin, end


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", tensors.FLOATS)
def test_permute(moe, dtype):
    c, begin, end = case(moe, dtype)
    moe.ok(
        "permute", "in.safetensors", "--ep-rank", "1/4", "--num-experts", E, "-o", "out.safetensors"
    )
    out = tensors.load(moe.folder / "out.safetensors")
    order = routing.order_of(c["indices"])[begin:end]
    same(out["permuted_tokens"], c["tokens"][order // K])
    same(out["permuted_probs"], c["probs"].reshape(-1)[order])
    same(out["sorted_indices"], c["sorted_indices"])
    same(
        out["tokens_per_expert"],
        np.bincount(c["indices"].reshape(-1), minlength=E).astype(np.int32),
    )


@pytest.mark.parametrize("dtype", tensors.FLOATS)
def test_permute_grad(moe, dtype):
    c, begin, end = case(moe, dtype)
    moe.ok(
        "permute-grad", "in.safetensors", "--ep-range", f"{begin}:{end}", "-o", "out.safetensors"
    )
    out = tensors.load(moe.folder / "out.safetensors")
    local = routing.locals_of(c["sorted_indices"], begin, end)
    same(out["tokens_grad"], routing.sums(c["permuted_tokens_grad"], local, K))
    same(out["probs_grad"], routing.copies(c["permuted_probs_grad"], local).reshape(T, K))


@pytest.mark.parametrize("dtype", tensors.FLOATS)
def test_unpermute(moe, dtype):
    c, begin, end = case(moe, dtype)
    moe.ok(
        "unpermute",
        "in.safetensors",
        "--ep-rank",
        "1/4",
        "-o",
        "out.safetensors",
        "--num-experts",
        E,
    )
    out = tensors.load(moe.folder / "out.safetensors")
    local = routing.locals_of(c["sorted_indices"], begin, end)
    same(out["out"], routing.sums(c["permuted_tokens"], local, K, c["probs"]))


@pytest.mark.parametrize("dtype", tensors.FLOATS)
def test_unpermute_grad(moe, dtype):
    c, begin, end = case(moe, dtype)
    moe.ok(
        "unpermute-grad", "in.safetensors", "--ep-range", f"{begin}:{end}", "-o", "out.safetensors"
    )
    out = tensors.load(moe.folder / "out.safetensors")
    local = routing.locals_of(c["sorted_indices"], begin, end)
    wide = np.float64 if dtype == "float64" else np.float32
    rows = np.zeros_like(c["permuted_tokens"])
    dots = np.zeros(T * K)
    for slot in np.flatnonzero(local >= 0):
        grad = c["unpermuted_tokens_grad"][slot // K].astype(wide)
        rows[local[slot]] = (grad * wide(c["probs"].reshape(-1)[slot])).astype(rows.dtype)
        dots[slot] = c["permuted_tokens"][local[slot]].astype(np.float64) @ grad.astype(np.float64)
    same(out["permuted_tokens_grad"], rows)
    assert np.allclose(out["probs_grad"].reshape(-1), dots, rtol=1e-5, atol=1e-5)


def test_the_published_sample_from_npy(moe):
    """The sample of the operator's page: twelve numbers."""
    np.save(
        moe.folder / "permuted_tokens_grad.npy",
        np.array([[2, 2], [1, 1], [3, 3], [2, 2]], np.float32),
    )
    np.save(moe.folder / "permuted_probs_grad.npy", np.array([0.2, 0.5, 0.4, 0.4], np.float32))
    np.save(moe.folder / "sorted_indices.npy", np.array([2, 0, 4, 1, 5, 3], np.int32))
    moe.ok("permute-grad", ".", "--top-k", 2, "--ep-range", "1:5", "-o", "out/")
    assert moe.files() == [
        "out", "out/probs_grad.npy", "out/tokens_grad.npy", "permuted_probs_grad.npy",
        "permuted_tokens_grad.npy", "sorted_indices.npy",
    ]  # fmt: skip
    assert np.load(moe.folder / "out/tokens_grad.npy").tolist() == [[1, 1], [4, 4], [3, 3]]
    want = np.array([[0.5, 0], [0.4, 0.2], [0, 0.4]], np.float32)
    assert np.array_equal(np.load(moe.folder / "out/probs_grad.npy"), want)


def test_fortran_order_operands(moe):
    c, begin, end = case(moe, "float32")
    moe.ok("permute", "in.safetensors", "--ep-range", f"{begin}:{end}", "-o", "a.safetensors")
    for name in ("tokens", "indices", "probs"):
        np.save(moe.folder / f"{name}.npy", np.asfortranarray(c[name]))
    moe.ok(
        "permute",
        "tokens.npy",
        "indices.npy",
        "probs.npy",
        "--ep-range",
        f"{begin}:{end}",
        "-o",
        "b.safetensors",
    )
    assert tensors.load_raw(moe.folder / "a.safetensors") == tensors.load_raw(
        moe.folder / "b.safetensors"
    )


def test_capacity_and_wide_indices(moe):
    _c, begin, end = case(moe, "float32")
    moe.ok(
        "permute",
        "in.safetensors",
        "--ep-range",
        f"{begin}:{end}",
        "--rows",
        30,
        "--wide-indices",
        "-o",
        "o.safetensors",
    )
    out = tensors.load(moe.folder / "o.safetensors")
    assert (
        out["permuted_tokens"].shape == (30, H) and not out["permuted_tokens"][end - begin :].any()
    )
    assert out["sorted_indices"].dtype == np.int64


def test_a_rank_without_tokens(moe):
    moe.ok(
        "gen", "--for", "all", "--routing", "empty-rank", "--ep-rank", "2/4", "-o", "in.safetensors"
    )
    for op in ("permute", "permute-grad", "unpermute", "unpermute-grad"):
        result = moe.json(op, "in.safetensors", "--ep-rank", "2/4", "-o", "out.safetensors")
        assert result["case"]["ep_range"][0] == result["case"]["ep_range"][1]
        for tensor in tensors.load(moe.folder / "out.safetensors").values():
            assert tensor.dtype == np.int32 or not tensor.any()


def test_ranks_tile_the_whole(moe):
    _c, _, _ = case(moe, "float32")
    moe.ok("permute", "in.safetensors", "-o", "all.safetensors")
    parts = []
    for rank in range(4):
        moe.ok(
            "permute",
            "in.safetensors",
            "--ep-rank",
            f"{rank}/4",
            "--num-experts",
            E,
            "-o",
            "part.safetensors",
        )
        parts.append(tensors.load(moe.folder / "part.safetensors")["permuted_tokens"])
    same(np.concatenate(parts), tensors.load(moe.folder / "all.safetensors")["permuted_tokens"])


def test_json_says_what_ran(moe):
    case(moe, "bfloat16")
    result = moe.json("permute", "in.safetensors", "-o", "out.safetensors", "--kernel", "portable")
    assert result["kernel"] == "portable" and result["files"] == ["out.safetensors"]
    assert result["case"]["dtype"] == "bfloat16" and result["case"]["num_slots"] == T * K


def test_check_indices(moe):
    c, begin, end = case(moe, "float32")
    c["sorted_indices"][4] = c["sorted_indices"][1]
    tensors.save(moe.folder / "bad.safetensors", **c)
    arguments = (
        "unpermute",
        "bad.safetensors",
        "--ep-range",
        f"{begin}:{end}",
        "-o",
        "out.safetensors",
    )
    moe.ok(*arguments)
    (moe.folder / "out.safetensors").unlink()
    assert "slot 4" in moe.fails(2, *arguments, "--check-indices")
    assert moe.files() == ["bad.safetensors", "in.safetensors"]
