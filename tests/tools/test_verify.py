"""verify names each seeded mistake, on random cases, and says "unexplained" when it is none."""

import numpy as np
import pytest
import routing
import tensors

T, K, E, H = 24, 4, 16, 12
RANK = (1, 4)
SEEDS = [1, 2, 3]


class Case:
    """A random case, what its operators give, and the means to make mistakes."""

    def __init__(self, moe, seed, dtype="bfloat16", padding=0, probs_dtype=np.float32, rank=RANK):
        self.rank = rank
        self.moe, self.rng = moe, np.random.default_rng(seed)
        self.dtype = tensors.FLOATS[dtype]
        self.indices = routing.make(self.rng, T, K, E)
        self.rows = routing.rows_of(self.indices)
        self.begin, self.end = routing.rank_window(self.indices, E, *rank)
        self.num_rows = self.end - self.begin
        assert self.num_rows > 2
        self.tokens = self.values(T, H)
        self.grad = self.values(T, H)
        self.buffer = self.values(self.num_rows + padding, H)
        self.probs_rows = self.rng.uniform(0.1, 1, self.num_rows + padding).astype(probs_dtype)
        self.probs = self.rng.uniform(0.1, 1, (T, K)).astype(probs_dtype)
        self.local = routing.locals_of(self.rows, self.begin, self.end)

    def values(self, *shape):
        return self.rng.uniform(-1, 1, shape).astype(self.dtype)

    def verify(self, op, theirs, code=1, **changed):
        inputs = {
            "permute": {"tokens": self.tokens, "indices": self.indices, "probs": self.probs},
            "permute-grad": {
                "permuted_tokens_grad": self.buffer,
                "permuted_probs_grad": self.probs_rows,
                "sorted_indices": self.rows,
                "indices": self.indices,
            },
            "unpermute": {
                "permuted_tokens": self.buffer,
                "sorted_indices": self.rows,
                "probs": self.probs,
                "indices": self.indices,
            },
            "unpermute-grad": {
                "unpermuted_tokens_grad": self.grad,
                "permuted_tokens": self.buffer,
                "sorted_indices": self.rows,
                "probs": self.probs,
                "indices": self.indices,
            },
        }[op] | changed
        tensors.save(self.moe.folder / "in.safetensors", **inputs)
        tensors.save(self.moe.folder / "theirs.safetensors", **theirs)
        return self.moe.json(
            "verify", op, "in.safetensors", "--against", "theirs.safetensors",
            "--ep-rank", f"{self.rank[0]}/{self.rank[1]}", "--num-experts", E, code=code,
        )  # fmt: skip

    # Outputs, right or wrong.
    def permute(self, order=None, window=None, rows=None, token=lambda slot: slot // K):
        order = routing.order_of(self.indices) if order is None else order
        begin, end = window or (self.begin, self.end)
        slots = order[begin:end]
        pad = (rows or end - begin) - (end - begin)
        return {
            "permuted_tokens": np.pad(self.tokens[token(slots)], ((0, pad), (0, 0))),
            "permuted_probs": np.pad(self.probs.reshape(-1)[slots], (0, pad)),
            "sorted_indices": self.rows,
        }

    def permute_grad(self, local=None, **how):
        local = self.local if local is None else np.where(local < len(self.buffer), local, -1)
        return {
            "tokens_grad": routing.sums(self.buffer, local, K, **how),
            "probs_grad": routing.copies(self.probs_rows, local).reshape(T, K),
        }

    def unpermute(self, local=None, weights="own", **how):
        local = self.local if local is None else np.where(local < len(self.buffer), local, -1)
        weights = self.probs if isinstance(weights, str) else weights
        return {"out": routing.sums(self.buffer, local, K, weights, **how)}

    def unpermute_grad(self, local=None, weights=None):
        local = self.local if local is None else np.where(local < len(self.buffer), local, -1)
        weights = self.probs if weights is None else weights
        rows = np.zeros_like(self.buffer)
        dots = np.zeros(T * K, np.float32)
        for slot in np.flatnonzero(local >= 0):
            grad = self.grad[slot // K].astype(np.float32)
            product = grad * np.float32(weights.reshape(-1)[slot])
            rows[local[slot]] = product.astype(self.dtype)
            dots[slot] = (self.buffer[local[slot]].astype(np.float32) * grad).sum()
        return {"permuted_tokens_grad": rows, "probs_grad": dots.reshape(T, K)}


def causes(report):
    return [e["id"] for e in report["explanations"]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", tensors.FLOATS)
def test_right_results_are_equal(moe, seed, dtype):
    c = Case(moe, seed, dtype, probs_dtype=np.float64 if dtype == "float64" else np.float32)
    for op, theirs in (
        ("permute", c.permute()),
        ("permute-grad", c.permute_grad()),
        ("unpermute", c.unpermute()),
        ("unpermute-grad", {"permuted_tokens_grad": c.unpermute_grad()["permuted_tokens_grad"]}),
    ):
        if dtype == "float64" and op == "unpermute-grad":
            continue  # the oracle above multiplies in float32
        report = c.verify(op, theirs, code=0)
        assert report["equal"] is True and report["accepted"] is True


def shifted(c, begin=0, end=0, base=0):
    """Rows as a program takes them whose window's begin, end or first row is off."""
    local = routing.locals_of(c.rows, c.begin + begin, c.end + end)
    return np.where(local >= 0, local + begin - base, -1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "shift", [(1, 0, 1), (-1, 0, -1), (0, -1, 0), (1, 1, 1), (-1, -1, -1), (0, 0, 1)], ids=str
)
@pytest.mark.parametrize("op", ["permute-grad", "unpermute"])
def test_window_off_by_one(moe, seed, shift, op):
    c = Case(moe, seed)
    local = shifted(c, *shift)
    theirs = c.permute_grad(local) if op == "permute-grad" else c.unpermute(local)
    report = c.verify(op, theirs)
    assert report["cause"] == "window-off-by-one", report["explanations"]
    assert report["explanations"][0]["match"] == "exact"
    begin, end, base = shift
    wrong = {c.begin + begin, c.end + end, c.begin + base} - {c.begin, c.end}
    assert any(str(row) in report["explanations"][0]["detail"] for row in wrong)


@pytest.mark.parametrize("seed", SEEDS)
def test_window_that_ends_late_reads_the_padding(moe, seed):
    c = Case(moe, seed, padding=3)
    report = c.verify("permute-grad", c.permute_grad(shifted(c, 0, 1)))
    assert report["cause"] == "window-off-by-one", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by", [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)], ids=str)
def test_permute_window_off_by_one(moe, seed, by):
    c = Case(moe, seed)
    report = c.verify("permute", c.permute(window=(c.begin + by[0], c.end + by[1])))
    assert report["cause"] == "window-off-by-one", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_times_top_k(moe, seed):
    c = Case(moe, seed)
    report = c.verify("permute", c.permute(rows=c.num_rows * K))
    assert report["cause"] == "rows-times-top-k", report["explanations"]
    # As an input: rows behind the window's are read.
    c = Case(moe, seed)
    c.buffer, c.probs_rows = (
        c.values(c.num_rows * K, H),
        c.rng.uniform(0, 1, c.num_rows * K).astype(np.float32),
    )
    local = routing.locals_of(c.rows, c.begin, c.begin + c.num_rows * K)
    report = c.verify("permute-grad", c.permute_grad(local))
    assert report["cause"] == "rows-times-top-k", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
def test_padded_buffer(moe, seed):
    c = Case(moe, seed, padding=7)
    report = c.verify("permute", c.permute(rows=c.num_rows + 5))
    assert report["cause"] == "padded-buffer", report["explanations"]
    garbage = c.permute(rows=c.num_rows + 5)
    garbage["permuted_tokens"][c.num_rows :] = 7
    garbage["permuted_probs"][c.num_rows :] = 7
    report = c.verify("permute", garbage)
    assert report["cause"] == "padded-buffer", report["explanations"]
    local = routing.locals_of(c.rows, c.begin, c.begin + len(c.buffer))
    for op, theirs in (("permute-grad", c.permute_grad(local)), ("unpermute", c.unpermute(local))):
        report = c.verify(op, theirs)
        assert report["cause"] == "padded-buffer", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_padded_buffer_of_all_rows(moe, seed):
    """No mistake is named that would change nothing here."""
    c = Case(moe, seed, rank=(0, 1))
    for rows, cause in ((c.num_rows * K, "rows-times-top-k"), (c.num_rows + 5, "padded-buffer")):
        report = c.verify("permute", c.permute(rows=rows))
        assert causes(report) == [cause], report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
def test_argsort_for_its_inverse(moe, seed):
    c = Case(moe, seed)
    order = routing.order_of(c.indices).astype(np.int32)
    local = routing.locals_of(order, c.begin, c.end)
    for op, theirs in (
        ("permute-grad", c.permute_grad(local)),
        ("unpermute", c.unpermute(local)),
        ("unpermute-grad", c.unpermute_grad(local)),
    ):
        report = c.verify(op, theirs)
        assert report["cause"] == "argsort-not-inverse", (op, report["explanations"])
    # The other way round: the inputs hold the argsort, the results are right.
    report = c.verify("permute-grad", c.permute_grad(), sorted_indices=order)
    assert report["cause"] == "argsort-not-inverse", report["explanations"]
    # What permute writes; and what it gathers by.
    report = c.verify("permute", c.permute() | {"sorted_indices": order})
    assert report["cause"] == "argsort-not-inverse", report["explanations"]
    report = c.verify("permute", c.permute(order=c.rows))
    assert report["cause"] == "argsort-not-inverse", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("op", ["permute-grad", "unpermute"])
def test_narrow_sums(moe, seed, dtype, order, op):
    c = Case(moe, seed, dtype, rank=(0, 1))
    make = c.permute_grad if op == "permute-grad" else c.unpermute
    report = c.verify(op, make(narrow=True, order=order))
    assert report["cause"] == "narrow-sums", report["explanations"]
    assert report["explanations"][0]["match"] == "exact"
    assert dtype in report["explanations"][0]["detail"]


@pytest.mark.parametrize("seed", SEEDS)
def test_probs(moe, seed):
    c = Case(moe, seed)
    for cause, weights in (
        ("probs-not-applied", None),
        ("probs-applied-twice", c.probs * c.probs),
        ("rounded-probs", c.probs.astype(tensors.FLOATS["bfloat16"]).astype(np.float32)),
        ("probs-transposed", c.probs.reshape(K, T).T),
        ("probs-by-row", c.probs.reshape(-1)[c.rows]),
    ):
        report = c.verify("unpermute", c.unpermute(weights=weights))
        assert report["cause"] == cause, report["explanations"]
        if weights is None:
            weights = np.ones_like(c.probs)
        report = c.verify("unpermute-grad", c.unpermute_grad(weights=weights))
        assert report["cause"] == cause, report["explanations"]
    report = c.verify("permute-grad", {"tokens_grad": c.unpermute()["out"]}, probs=c.probs)
    assert report["cause"] == "probs-applied", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_rank_and_no_window(moe, seed):
    c = Case(moe, seed)
    window = routing.rank_window(c.indices, E, 2, 4)
    report = c.verify("permute", c.permute(window=window))
    assert report["cause"] == "wrong-rank" and "rank 2 of 4" in report["explanations"][0]["detail"]
    report = c.verify("permute", c.permute(window=(0, T * K)))
    assert report["cause"] == "window-ignored", report["explanations"]
    local = routing.locals_of(c.rows, 0, c.num_rows)
    report = c.verify("permute-grad", c.permute_grad(local))
    assert "window-ignored" in causes(report), report["explanations"]  # rank 0's may be the same
    local = np.clip(c.rows - c.begin, 0, c.num_rows - 1)
    report = c.verify("permute-grad", c.permute_grad(local))
    assert report["cause"] == "rows-clamped", report["explanations"]
    wrapped = c.rows.astype(int) - c.begin
    local = np.where(wrapped < 0, wrapped + c.num_rows, wrapped)
    report = c.verify("permute-grad", c.permute_grad(np.where(local < 0, -1, local)))
    assert report["cause"] == "rows-wrap", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
def test_layouts_and_leftovers(moe, seed):
    c = Case(moe, seed)
    transposed = routing.locals_of(c.rows.reshape(K, T).T.reshape(-1), c.begin, c.end)
    report = c.verify("permute-grad", c.permute_grad(transposed))
    assert report["cause"] == "slots-transposed", report["explanations"]
    last = c.permute_grad(keep=lambda slots: slots[-1:])
    report = c.verify("permute-grad", last)
    assert report["cause"] == "one-slot-only", report["explanations"]
    right = c.permute_grad()
    kept = (c.local.reshape(T, K) >= 0).any(axis=1)
    report = c.verify("permute-grad", {"tokens_grad": right["tokens_grad"][kept]})
    assert report["cause"] == "tokens-left-out", report["explanations"]
    report = c.verify("permute-grad", {"tokens_grad": np.ascontiguousarray(right["tokens_grad"].T)})
    assert report["cause"] == "matrix-transposed", report["explanations"]
    report = c.verify("permute-grad", {k: np.zeros_like(v) for k, v in right.items()})
    assert report["cause"] == "never-written", report["explanations"]
    report = c.verify("permute-grad", {"tokens_grad": right["tokens_grad"].astype(np.float32)})
    assert report["cause"] == "other-dtype", report["explanations"]
    report = c.verify("permute", c.permute(token=lambda slot: slot % T))
    assert report["cause"] == "wrong-token", report["explanations"]
    descending = np.argsort(-c.indices.reshape(-1), kind="stable")
    rows = np.empty(T * K, np.int32)
    rows[descending] = np.arange(T * K)
    report = c.verify("permute", c.permute(order=descending) | {"sorted_indices": rows})
    assert report["cause"] == "descending-experts", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
def test_unstable_sort(moe, seed):
    c = Case(moe, seed)
    ids = c.indices.reshape(-1)
    order = np.lexsort((c.rng.permutation(T * K), ids))
    rows = np.empty(T * K, np.int32)
    rows[order] = np.arange(T * K)
    report = c.verify("permute", c.permute(order=order) | {"sorted_indices": rows})
    assert report["cause"] == "unstable-sort", report["explanations"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("op", ["permute", "permute-grad", "unpermute", "unpermute-grad"])
def test_unexplained(moe, seed, op):
    c = Case(moe, seed)
    right = {
        "permute": c.permute, "permute-grad": c.permute_grad, "unpermute": c.unpermute,
        "unpermute-grad": c.unpermute_grad,
    }[op]()  # fmt: skip
    name = next(iter(right))
    for wrong in (
        c.rng.permutation(right[name].reshape(-1)).reshape(right[name].shape),
        c.values(*right[name].shape),
        np.where(
            c.rng.uniform(size=right[name].shape) < 0.1, 9, right[name].astype(np.float32)
        ).astype(c.dtype),
    ):
        report = c.verify(op, {name: wrong})
        assert report["cause"] == "unexplained" and report["explanations"] == []
        assert report["hypotheses_tried"] > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_two_mistakes_in_two_outputs_are_named_apart(moe, seed):
    c = Case(moe, seed)
    theirs = c.permute_grad(keep=lambda slots: slots[-1:])
    theirs["probs_grad"] = c.permute_grad(shifted(c, 1, 1, 1))["probs_grad"]
    report = c.verify("permute-grad", theirs)
    found = {e["outputs"][0]: e["id"] for e in report["explanations"]}
    assert found == {"tokens_grad": "one-slot-only", "probs_grad": "window-off-by-one"}


@pytest.mark.parametrize("shape", [(2**50, 0), (2**40, 0, 2), (0, 2**50), (0,), (), (1,) * 60])
def test_results_of_a_strange_shape(moe, shape):
    c = Case(moe, 4)
    empty = np.zeros(1 if 0 not in shape else 0, c.dtype).tobytes()
    for op in ("permute", "permute-grad", "unpermute", "unpermute-grad"):
        right = getattr(c, op.replace("-", "_"))()
        name = next(iter(right))
        c.verify(op, {name: right[name]}, code=0)  # writes the inputs
        tensors.save_by_hand(
            moe.folder / "theirs.safetensors", {n: ("bfloat16", shape, empty) for n in right}
        )
        report = moe.json("verify", op, "in.safetensors", "--against", "theirs.safetensors", code=1)
        assert report["cause"] == "unexplained", report["explanations"]


@pytest.mark.parametrize("op", ["permute-grad", "unpermute", "unpermute-grad"])
def test_indices_that_are_no_rows(moe, op):
    c = Case(moe, 11)
    wild = c.rng.choice([-(2**63), -1, 2**31, 2**63 - 1, 0, c.begin], T * K)
    name = {"permute-grad": "tokens_grad", "unpermute": "out"}.get(op, "permuted_tokens_grad")
    shape = (c.num_rows, H) if op == "unpermute-grad" else (T, H)
    report = c.verify(op, {name: c.values(*shape)}, sorted_indices=wild)
    assert report["cause"] == "unexplained" and "no permutation" in report["note"]


def test_numbers_of_a_difference(moe):
    c = Case(moe, 5)
    theirs = c.permute_grad()
    token = int(np.flatnonzero((c.local.reshape(T, K) >= 0).any(axis=1))[1])
    bits = theirs["tokens_grad"].view(np.uint16)
    bits[token, 3] += 2
    bits[token, 7] += 4
    report = c.verify("permute-grad", theirs)
    tokens_grad = report["outputs"][0]
    assert (tokens_grad["num_different"], tokens_grad["max_ulps"], tokens_grad["mean_ulps"]) == (
        2,
        4,
        3,
    )
    assert tokens_grad["first"]["index"] == [token, 3] and tokens_grad["first"]["token"] == token
    assert c.local[tokens_grad["first"]["slot"]] >= 0
    assert report["outputs"][1]["equal"] is True
    # Up to --ulps apart is accepted.
    for ulps, code in ((3, 1), (4, 0)):
        result = moe.run(
            "verify", "permute-grad", "in.safetensors", "--against", "theirs.safetensors",
            "--ep-rank", "1/4", "--num-experts", E, "--ulps", ulps,
        )  # fmt: skip
        assert result.code == code, result.out


def test_rounding_is_told_from_mistakes(moe):
    c = Case(moe, 6, "float32")
    right = c.unpermute()["out"]
    noisy = (right.astype(np.float64) * (1 + 6e-8 * c.rng.choice([-1, 0, 1], right.shape))).astype(
        np.float32
    )
    report = c.verify("unpermute", {"out": noisy})
    assert report["cause"] == "rounding", report["explanations"]
    report = c.verify("unpermute", c.unpermute(order="descending"))
    assert report["cause"] == "other-order", report["explanations"]


def test_a_single_term_has_no_rounding(moe):
    """A window of few rows: no token has two terms there, so that no addition explains an error."""
    c = Case(moe, 10)
    c.end, c.num_rows = c.begin + 1, 1
    c.buffer, c.probs_rows = c.buffer[:1], c.probs_rows[:1]
    c.local = routing.locals_of(c.rows, c.begin, c.end)
    tensors.save(
        moe.folder / "in.safetensors",
        permuted_tokens_grad=c.buffer, sorted_indices=c.rows, indices=c.indices,
    )  # fmt: skip
    off = c.permute_grad()["tokens_grad"].astype(np.float32) * (1 + 0.015 * (-1) ** np.arange(H))
    tensors.save(moe.folder / "theirs.safetensors", tokens_grad=off.astype(c.dtype))
    report = moe.json(
        "verify", "permute-grad", "in.safetensors", "--against", "theirs.safetensors",
        "--ep-range", f"{c.begin}:{c.end}", code=1,
    )  # fmt: skip
    assert report["cause"] == "unexplained", report["explanations"]


def test_nan_equals_nan_and_zero_signs_show(moe):
    c = Case(moe, 7)
    c.buffer[0, 0] = np.nan
    report = c.verify("unpermute", c.unpermute(), code=0)
    assert report["equal"] is True
    theirs = c.unpermute()
    theirs["out"] = np.where(theirs["out"] == 0, -theirs["out"], theirs["out"]).astype(c.dtype)
    report = c.verify("unpermute", theirs)
    assert report["cause"] == "zero-signs" and report["outputs"][0]["max_ulps"] == 0
    assert len(report["explanations"]) == 1, report["explanations"]
    theirs["out"] = np.nan_to_num(c.unpermute()["out"].astype(np.float32)).astype(c.dtype)
    assert c.verify("unpermute", theirs)["outputs"][0]["num_nan"] == 1


def test_text_names_cause_and_place(moe):
    c = Case(moe, 8)
    c.verify("permute-grad", c.permute_grad(shifted(c, 1, 0, 1)))
    result = moe.run(
        "verify", "permute-grad", "in.safetensors", "--against", "theirs.safetensors",
        "--ep-range", f"{c.begin}:{c.end}",
    )  # fmt: skip
    assert result.code == 1 and result.err == ""
    assert (
        "cause: window-off-by-one: the window is off by one\n"
        f"  the window begins at row {c.begin + 1} instead of {c.begin}\n"
    ) in result.out
    assert "first: tokens_grad[" in result.out and "units in the last place" in result.out


def test_nothing_to_compare(moe):
    c = Case(moe, 9)
    c.verify("permute", c.permute(), code=0)
    message = moe.fails(
        2, "verify", "permute-grad", "in.safetensors", "--against", "theirs.safetensors"
    )
    assert "permuted_tokens_grad: missing" in message
    tensors.save(moe.folder / "other.safetensors", x=c.tokens)
    message = moe.fails(2, "verify", "permute", "in.safetensors", "--against", "other.safetensors")
    assert "the files hold x; needs one of permuted_tokens, sorted_indices" in message
