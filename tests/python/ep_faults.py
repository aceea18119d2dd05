"""What ranks do in test_torch_ep_faults.py: functions that each rank imports."""

from __future__ import annotations

import itertools
import os
import signal
import time

import torch
import torch.distributed as dist
from moe_permute.torch.ep import ExpertExchange, ExpertParallelMoE

NUM_EXPERTS, TOP_K, HIDDEN = 8, 2, 4


def message_of(call):
    try:
        call()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing raised"


def disagree(rank, num_ranks, name, value):
    """What this rank hears when the last one has another argument."""
    keywords = {"num_experts": NUM_EXPERTS, "top_k": TOP_K, "hidden_size": HIDDEN}
    if rank == num_ranks - 1:
        keywords[name] = value
    return message_of(lambda: ExpertExchange(**keywords))


def disagree_on_expert_size(rank, num_ranks):
    expert_size = 7 if rank == num_ranks - 1 else 6
    return message_of(lambda: ExpertParallelMoE(HIDDEN, expert_size, NUM_EXPERTS, TOP_K))


def use_a_group_of_others(rank, num_ranks):
    group = dist.new_group([0])
    return message_of(lambda: ExpertExchange(NUM_EXPERTS, TOP_K, HIDDEN, group=group))


def disagree_on_each(rank, num_ranks, changes):
    return [disagree(rank, num_ranks, name, value) for name, value in changes]


def invalid_everywhere(rank, num_ranks, changes):
    keywords = {"num_experts": NUM_EXPERTS, "top_k": TOP_K, "hidden_size": HIDDEN}
    return [message_of(lambda c=c: ExpertExchange(**(keywords | c))) for c in changes]


def invalid_tensors(rank, num_ranks):
    exchange = ExpertExchange(NUM_EXPERTS, TOP_K, HIDDEN)
    indices, probs = torch.zeros(3, TOP_K, dtype=torch.int64), torch.ones(3, TOP_K)
    messages = [
        message_of(lambda: exchange.route(indices.float(), probs)),
        message_of(lambda: exchange.route(indices[:, :1], probs)),
        message_of(lambda: exchange.route(indices)),
        message_of(lambda: exchange.route(indices, probs.double())),
        message_of(lambda: exchange.route(indices, probs[:2])),
    ]
    routed = exchange.route(indices, probs)
    messages += [
        message_of(lambda: routed.dispatch(torch.ones(3, HIDDEN, dtype=torch.float16))),
        message_of(lambda: routed.dispatch(torch.ones(2, HIDDEN))),
        message_of(lambda: routed.combine(torch.ones(routed.num_rows + 1, HIDDEN))),
    ]
    return messages


def invalid_on_one(rank, num_ranks):
    """What this rank hears when the last one gives wrong tensors; then all goes on as if not."""
    exchange, odd = ExpertExchange(NUM_EXPERTS, TOP_K, HIDDEN), rank == num_ranks - 1
    indices, probs = torch.zeros(3, TOP_K, dtype=torch.int64), torch.ones(3, TOP_K) / TOP_K
    tokens = torch.ones(3, HIDDEN)
    heard = [message_of(lambda: exchange.route(indices[:, odd:], probs))]
    routed = exchange.route(indices, probs)
    heard.append(message_of(lambda: routed.dispatch(tokens[odd:])))
    rows = routed.dispatch(tokens)
    heard.append(message_of(lambda: routed.combine(rows.double() if odd else rows)))
    with torch.set_grad_enabled(not odd):
        heard.append(message_of(lambda: routed.combine(rows)))
    assert torch.equal(routed.combine(rows), tokens)
    return heard


def want_different_gradients(rank, num_ranks):
    """The last rank's tensors want no gradients where the others' do; then it alone wants them."""
    exchange = ExpertExchange(NUM_EXPERTS, TOP_K, HIDDEN, num_chunks=2)
    for name, odd_wants in itertools.product(("tokens", "probs", "rows"), (False, True)):
        wants = (rank == num_ranks - 1) == odd_wants
        step_with_gradient_of(exchange, name if wants else None)


def step_with_gradient_of(exchange, name):
    indices = torch.arange(5 * TOP_K).view(5, TOP_K) % NUM_EXPERTS
    tokens, probs = torch.ones(5, HIDDEN), torch.full((5, TOP_K), 1 / TOP_K)
    leaves = {"tokens": tokens, "probs": probs, "rows": torch.ones(())}
    if name is not None:
        leaves[name].requires_grad_()
    routed = exchange.route(indices, probs)
    out = routed.combine(routed.dispatch(tokens) * leaves["rows"])
    out.backward(torch.ones_like(out))
    assert torch.equal(out, tokens)
    gradients = {"tokens": 1, "probs": HIDDEN, "rows": routed.num_rows * HIDDEN / TOP_K}
    for key, leaf in leaves.items():
        assert leaf.grad is None if key != name else (leaf.grad == gradients[key]).all(), key


def lose_a_rank(rank, num_ranks, form, last_step):
    """Steps without end, until the last rank dies in the middle of one: what the others hear."""
    random = torch.Generator().manual_seed(rank)
    exchange = ExpertExchange(NUM_EXPERTS, TOP_K, HIDDEN, form=form)
    step = 0
    while True:
        indices = torch.randint(NUM_EXPERTS, (50, TOP_K), generator=random)
        tokens = torch.ones(50, HIDDEN, requires_grad=True)
        start = time.monotonic()
        try:
            routed = exchange.route(indices, torch.full(indices.shape, 0.5))
            rows = routed.dispatch(tokens)
            if rank == num_ranks - 1 and step == last_step:
                os.kill(os.getpid(), signal.SIGKILL)
            out = routed.combine(rows)
            out.sum().backward()
        except RuntimeError as error:
            return step, time.monotonic() - start, str(error)
        # A step that comes to its end is right: expert outputs equal the tokens.
        assert torch.equal(out, tokens) and torch.equal(tokens.grad, torch.ones(50, HIDDEN))
        step += 1


def stop_a_rank(rank, num_ranks):
    """The last rank hangs without dying: what the others hear."""
    exchange = ExpertExchange(NUM_EXPERTS, TOP_K, HIDDEN)
    if rank == num_ranks - 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    start = time.monotonic()
    try:
        exchange.route(torch.zeros(5, TOP_K, dtype=torch.int64), torch.ones(5, TOP_K))
    except RuntimeError as error:
        return time.monotonic() - start, str(error)
    return None
