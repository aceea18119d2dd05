"""moe_permute.torch: fake kernels give the shapes, and refuse the arguments, that real ones do."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

import moe_permute.torch  # noqa: E402, F401

OPS = torch.ops.moe_permute
WINDOWS = [None, (0, 8), (1, 4), (2, 2), (-1, 2), (3, 2), (0, 9)]
DOUBLE, SHORT = torch.float64, torch.int16


def floats(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


def indices(*shape, dtype=torch.int64):
    return torch.zeros(*shape, dtype=dtype)


TOKENS = [floats(4, 3), floats(4), floats(0, 3), indices(4, 3), floats(4, 3, dtype=DOUBLE)]
EXPERTS = [indices(4, 2), indices(4), indices(3, 2), indices(4, 0), indices(4, 2, dtype=SHORT)]
PROBS = [None, floats(4, 2), floats(4), floats(3, 2), floats(4, 2, dtype=DOUBLE)]
ROWS = [floats(8, 3), floats(8), floats(3, 3), floats(9, 3), floats(8, 3, dtype=DOUBLE)]
SORTED = [indices(8), indices(7), indices(0), indices(4, 2), floats(8)]
ROW_PROBS = [None, floats(8), floats(3), floats(8, 1), floats(8, dtype=DOUBLE)]
TOP_KS = [2, 1, 3, 0, -1]
MAYBE_ROWS = [None, floats(8, 3), floats(3, 3), floats(8, 2), floats(8, 3, dtype=torch.float16)]

CALLS = {
    OPS.permute.default: (TOKENS, EXPERTS, PROBS, WINDOWS),
    OPS.permute_grad.default: (ROWS, SORTED, ROW_PROBS, TOP_KS, WINDOWS),
    OPS.unpermute.default: (ROWS, SORTED, PROBS, TOP_KS, WINDOWS),
    OPS.unpermute_grad.default: (
        TOKENS[:2],
        SORTED[:2],
        MAYBE_ROWS,
        PROBS[:4:2],
        TOP_KS[:3],
        [None, (1, 4), (0, 9)],
        [8, 3, 9, -1],
    ),
}


def outcome(operator, arguments):
    """Shapes and dtypes of the results, or the kind of error."""
    try:
        results = operator(*arguments)
    except (TypeError, ValueError) as error:
        return type(error)
    results = results if isinstance(results, tuple) else (results,)
    return [None if r is None else (r.shape, r.dtype) for r in results]


def on_meta(argument):
    return argument.to("meta") if isinstance(argument, torch.Tensor) else argument


@pytest.mark.parametrize("operator", CALLS, ids=lambda operator: operator.name())
def test_fake_kernels_agree_with_real_ones(operator):
    num_fine = num_refused = 0
    for arguments in itertools.product(*CALLS[operator]):
        want = outcome(operator, arguments)
        assert outcome(operator, map(on_meta, arguments)) == want, arguments
        num_fine += isinstance(want, list)
        num_refused += want in (TypeError, ValueError)
    assert num_fine > 10 and num_refused > 10


def test_fake_kernels_name_the_argument():
    tokens, experts = floats(4, 3).to("meta"), indices(4, 2).to("meta")
    doubles = tokens[:, :2].double()
    for arguments, words in [
        ((tokens, experts, None, (0, 9)), r"ep_range: \[0, 9\), but needs 0 <= begin"),
        ((tokens, experts[:3], None, None), r"indices: shape \[3, 2\], but needs \[4, any\]"),
        ((tokens, experts, doubles, None), "probs: torch.float64, but needs float64"),
    ]:
        with pytest.raises(ValueError, match=words):
            OPS.permute(*arguments)
