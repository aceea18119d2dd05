#!/usr/bin/env python3
"""PermuteWithEpGrad beside what people write in PyTorch, in one process, on the same threads and memory.

usage: .venv/bin/python bench/compare_torch.py [options]     (scripts/setup --with-frameworks makes .venv)

Both sides read the same tensors and write outputs that exist before. Every timed call comes after the
same settling pass, the forms take turns, and each figure is a median. Answers are compared with sums in
float64. Prints a line per case and writes JSON where asked.
"""
import argparse
import ctypes
import json
import math
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTLE_BYTES = 64 << 20
# Threads of PyTorch's pool spin for some milliseconds after their work, on processors that the other side
# then lacks: let them fall asleep before the clock runs.
CALM_SECONDS = 0.02


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default=str(ROOT / "build/install/acl/lib64/libopapi.so"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096])
    parser.add_argument("--models", nargs="+", help="names of shapes.json; default: all")
    parser.add_argument("--ranks", nargs="+", default=["all", "1of8", "1of32"])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--json", help="write the figures there")
    parser.add_argument("--check", action="store_true",
                        help="measure nothing: fail where our answer or an eager form's is wrong")
    return parser.parse_args()


ARGS = parse_arguments()
# Before the libraries are loaded: each reads its number of threads once.
os.environ["MOE_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)
import torch  # noqa: E402


# --- the drop-in library, by ctypes --------------------------------------------------------------

ACL_DTYPES = {torch.float32: 0, torch.float16: 1, torch.int32: 3, torch.bfloat16: 27}
ACL_FORMAT_ND = 2
OPERATOR = "aclnnMoeTokenPermuteWithEpGrad"


class Library:
    """The C functions, each checked: a code that is not 0 becomes an exception with the message."""

    def __init__(self, path):
        self.dll = ctypes.CDLL(path)
        self.dll.aclGetRecentErrMsg.restype = ctypes.c_char_p
        for name in ("aclCreateTensor", "aclCreateIntArray"):
            getattr(self.dll, name).restype = ctypes.c_void_p
        self.call("aclInit", None)
        self.call("aclrtSetDevice", 0)
        self.stream = ctypes.c_void_p()
        self.call("aclrtCreateStream", ctypes.byref(self.stream))

    def call(self, name, *arguments):
        code = getattr(self.dll, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code} {self.dll.aclGetRecentErrMsg()}")

    def empty(self, shape, dtype):
        """A torch tensor over device memory of the library, which both sides then use."""
        num_bytes = max(1, torch.Size(shape).numel() * dtype.itemsize)
        block = ctypes.c_void_p()
        self.call("aclrtMalloc", ctypes.byref(block), ctypes.c_size_t(num_bytes), 0)
        memory = (ctypes.c_byte * num_bytes).from_address(block.value)
        tensor = torch.frombuffer(memory, dtype=dtype, count=torch.Size(shape).numel()).view(shape)
        tensor.fill_(0)  # faults every page in before any clock runs
        return tensor, block

    def free(self, block):
        self.call("aclrtFree", block)

    def describe(self, tensor):
        dims, strides = (ctypes.c_int64 * tensor.dim())(*tensor.shape), (ctypes.c_int64 * tensor.dim())(*tensor.stride())
        return ctypes.c_void_p(self.dll.aclCreateTensor(
            dims, ctypes.c_uint64(tensor.dim()), ACL_DTYPES[tensor.dtype], strides, ctypes.c_int64(0),
            ACL_FORMAT_ND, dims, ctypes.c_uint64(tensor.dim()), ctypes.c_void_p(tensor.data_ptr())))

    def window(self, begin, end):
        return ctypes.c_void_p(self.dll.aclCreateIntArray((ctypes.c_int64 * 2)(begin, end), ctypes.c_uint64(2)))


class OurCall:
    """One call of the operator: both phases and the synchronisation, as a program makes them."""

    def __init__(self, library, case):
        self.library, self.top_k = library, ctypes.c_int64(case.top_k)
        self.inputs = [library.describe(t) for t in (case.rows, case.sorted_indices, case.probs)]
        self.outputs = [library.describe(t) for t in (case.tokens_grad, case.probs_grad)]
        self.range = library.window(case.begin, case.end)

    def __call__(self):
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        self.library.call(OPERATOR + "GetWorkspaceSize", *self.inputs, self.top_k, self.range, False, *self.outputs,
                          ctypes.byref(size), ctypes.byref(executor))
        if size.value != 0:
            raise RuntimeError(f"workspace of {size.value} bytes wanted, and none expected")
        self.library.call(OPERATOR, None, size, executor, self.library.stream)
        self.library.call("aclrtSynchronizeStream", self.library.stream)

    def close(self):
        for tensor in self.inputs + self.outputs:
            self.library.call("aclDestroyTensor", tensor)
        self.library.call("aclDestroyIntArray", self.range)


# --- what people write in PyTorch ----------------------------------------------------------------
# All take (rows, sorted_indices, probs, top_k, begin, end, tokens_grad, probs_grad) and write the last two.


def inside(sorted_indices, top_k, begin, end):
    """For each slot [T, K]: whether it is in the window, and a row that exists in any case."""
    index = sorted_indices.view(-1, top_k).long() - begin
    return (index >= 0) & (index < end - begin), index.clamp(0, max(end - begin - 1, 0))


def probs_by_mask(sorted_indices, probs, top_k, begin, end, probs_grad):
    mask, index = inside(sorted_indices, top_k, begin, end)
    probs_grad.copy_(torch.where(mask, probs[index], 0.0))


def tokens_of_rows(sorted_indices, top_k, begin, end):
    """For each row of the window the token that it belongs to: the inverse permutation."""
    slots = torch.empty_like(sorted_indices)
    slots[sorted_indices.long()] = torch.arange(slots.numel(), dtype=slots.dtype)
    return slots[begin:end] // top_k


def formula_with_mask(rows, sorted_indices, probs, top_k, begin, end, tokens_grad, probs_grad):
    mask, index = inside(sorted_indices, top_k, begin, end)
    gathered = torch.where(mask[:, :, None], rows[index], 0.0)
    if torch.compiler.is_compiling():  # fuses the copy; `out=` would break its graph
        tokens_grad.copy_(gathered.sum(1, dtype=torch.float32))
    else:
        torch.sum(gathered, 1, out=tokens_grad)
    probs_by_mask(sorted_indices, probs, top_k, begin, end, probs_grad)


def index_add_in_dtype(rows, sorted_indices, probs, top_k, begin, end, tokens_grad, probs_grad):
    tokens_grad.zero_().index_add_(0, tokens_of_rows(sorted_indices, top_k, begin, end), rows)
    probs_by_mask(sorted_indices, probs, top_k, begin, end, probs_grad)


def index_add_in_f32(rows, sorted_indices, probs, top_k, begin, end, tokens_grad, probs_grad):
    total = torch.zeros(tokens_grad.shape, dtype=torch.float32)
    total.index_add_(0, tokens_of_rows(sorted_indices, top_k, begin, end), rows.float())
    tokens_grad.copy_(total)
    probs_by_mask(sorted_indices, probs, top_k, begin, end, probs_grad)


def forms_for(dtype):
    forms = [formula_with_mask, index_add_in_dtype]
    return forms + [index_add_in_f32] if dtype != torch.float32 else forms


# --- cases ---------------------------------------------------------------------------------------


@dataclass
class Case:
    name: str
    top_k: int
    begin: int
    end: int
    rows: torch.Tensor
    sorted_indices: torch.Tensor
    probs: torch.Tensor
    tokens_grad: torch.Tensor
    probs_grad: torch.Tensor
    blocks: list

    def arguments(self):
        return (self.rows, self.sorted_indices, self.probs, self.top_k, self.begin, self.end, self.tokens_grad,
                self.probs_grad)


def route(num_tokens, model, rank):
    """sorted_indices of a uniform router, and the window of a rank."""
    scores = torch.rand(num_tokens, model["num_experts"], generator=torch.Generator().manual_seed(1))
    experts = scores.topk(model["top_k"]).indices.flatten()
    order = torch.argsort(experts, stable=True)
    sorted_indices = torch.empty_like(order)
    sorted_indices[order] = torch.arange(order.numel())
    first_rows = torch.bincount(experts, minlength=model["num_experts"]).cumsum(0).tolist()
    edge = [r * model["num_experts"] // rank["num_ranks"] for r in (rank["rank"], rank["rank"] + 1)]
    begin, end = (first_rows[e - 1] if e > 0 else 0 for e in edge)
    return sorted_indices.int(), begin, end


def make_case(library, model, rank, num_tokens, dtype_name):
    """None for a rank that got no rows: the C API takes no empty tensor."""
    dtype = getattr(torch, dtype_name)
    indices, begin, end = route(num_tokens, model, rank)
    if begin == end:
        return None
    hidden_size, top_k = model["hidden_size"], model["top_k"]
    made = [library.empty(shape, of) for shape, of in (
        ((end - begin, hidden_size), dtype), ((num_tokens * top_k,), torch.int32), ((end - begin,), torch.float32),
        ((num_tokens, hidden_size), dtype), ((num_tokens, top_k), torch.float32))]
    tensors, blocks = [tensor for tensor, _ in made], [block for _, block in made]
    generator = torch.Generator().manual_seed(2)
    for part in tensors[0].split(4096):
        part.copy_(torch.randn(part.shape, generator=generator))
    tensors[1].copy_(indices)
    tensors[2].copy_(torch.rand(end - begin, generator=generator))
    name = f"{model['name']}/T{num_tokens}/{rank['name']}/{dtype_name}"
    return Case(name, top_k, begin, end, *tensors, blocks)


def all_cases(library):
    shapes = json.loads((ROOT / "bench/shapes.json").read_text(encoding="utf-8"))
    for model in shapes["models"]:
        if ARGS.models and model["name"] not in ARGS.models:
            continue
        for rank in (rank for rank in shapes["ranks"] if rank["name"] in ARGS.ranks):
            if rank["num_ranks"] > model["num_experts"]:
                continue
            for num_tokens in ARGS.tokens:
                for dtype_name in ARGS.dtypes:
                    case = make_case(library, model, rank, num_tokens, dtype_name)
                    if case is not None:
                        yield case


# --- measuring -----------------------------------------------------------------------------------


def largest_error(case):
    """Of tokens_grad against sums in float64, a few tokens at a time."""
    mask, index = inside(case.sorted_indices, case.top_k, case.begin, case.end)
    worst = 0.0
    for tokens in torch.arange(mask.shape[0]).split(256):
        exact = torch.where(mask[tokens, :, None], case.rows[index[tokens]].double(), 0.0).sum(1)
        error = (case.tokens_grad[tokens].double() - exact).abs().max().item()
        worst = max(worst, math.inf if math.isnan(error) else error)
    return worst


def timed(run, settle):
    settle.sum()
    time.sleep(CALM_SECONDS)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def contestants(library, case):
    """Name -> a call without arguments. The first call of each compiled form compiles."""
    runs = {"ours": OurCall(library, case)}
    for form in forms_for(case.rows.dtype):
        runs["eager " + form.__name__] = lambda form=form: form(*case.arguments())
        if not (ARGS.no_compile or ARGS.check):
            compiled = torch.compile(form, fullgraph=True, dynamic=False)
            runs["compiled " + form.__name__] = lambda compiled=compiled: compiled(*case.arguments())
    return runs


def measure(library, case, settle):
    runs = contestants(library, case)
    result = {"name": case.name, "milliseconds": {}, "error": {}}
    for name, run in runs.items():
        case.tokens_grad.fill_(float("nan"))
        run()
        result["error"][name] = largest_error(case)
    times = {name: [] for name in runs}
    for _ in range(ARGS.rounds):
        for name, run in runs.items():
            times[name].append(timed(run, settle))
    result["milliseconds"] = {name: statistics.median(values) * 1e3 for name, values in times.items()}
    runs["ours"].close()
    return result


def fastest(result, kind):
    names = [name for name in result["milliseconds"] if name.startswith(kind)]
    return min(names, key=result["milliseconds"].get) if names else None


def print_result(result):
    ours = result["milliseconds"]["ours"]
    line = f"{result['name']:40} {ours:9.2f} ms  error {result['error']['ours']:.1e}"
    for kind in ("eager", "compiled"):
        name = fastest(result, kind)
        if name is None:
            continue
        result["speedup_" + kind] = result["milliseconds"][name] / ours
        line += (f" | {result['speedup_' + kind]:6.1f}x {name} ({result['milliseconds'][name]:.1f} ms, "
                 f"error {result['error'][name]:.1e})")
    print(line, flush=True)


def bounds(result):
    """(what, at least, got) of a case."""
    _, _, rank, dtype = result["name"].split("/")
    yield "eager", 8.0 if dtype == "bfloat16" else 4.0, result["speedup_eager"]
    if "speedup_compiled" in result:
        yield "compiled", 1.0 if rank == "all" else 4.0, result["speedup_compiled"]


def sums_in_order(case):
    """tokens_grad as the contract has it: in float32, in ascending k, rounded once."""
    mask, index = inside(case.sorted_indices, case.top_k, case.begin, case.end)
    total = torch.zeros(case.tokens_grad.shape)
    for k in range(case.top_k):
        total += torch.where(mask[:, k, None], case.rows[index[:, k]].float(), 0.0)
    return total.to(case.tokens_grad.dtype)


def tolerance(case):
    """The largest error of a form that rounds to the dtype at every step."""
    return case.top_k ** 2 * case.rows.abs().max().item() * torch.finfo(case.rows.dtype).eps


def mistakes(library, case):
    runs = contestants(library, case)
    tokens_grad, probs_grad = sums_in_order(case), torch.empty_like(case.probs_grad)
    probs_by_mask(case.sorted_indices, case.probs, case.top_k, case.begin, case.end, probs_grad)
    for name, run in runs.items():
        case.tokens_grad.fill_(math.nan)
        case.probs_grad.fill_(math.nan)
        run()
        exact = torch.equal(case.tokens_grad, tokens_grad)
        if not exact and (name == "ours" or largest_error(case) > tolerance(case)):
            yield f"{case.name}: {name}: tokens_grad is off by up to {largest_error(case):.2e}"
        if not torch.equal(case.probs_grad, probs_grad):
            yield f"{case.name}: {name}: probs_grad differs"
    runs["ours"].close()


def check(library):
    num_cases, found = 0, []
    for case in all_cases(library):
        num_cases += 1
        found += mistakes(library, case)
        for block in case.blocks:
            library.free(block)
    print("".join(f"{line}\n" for line in found) + f"{num_cases} cases, {len(found)} wrong answers")
    return 1 if found or num_cases == 0 else 0


def main():
    torch.set_num_threads(ARGS.threads)
    library = Library(ARGS.library)
    return check(library) if ARGS.check else compare(library)


def compare(library):
    settle = torch.zeros(SETTLE_BYTES // 4)
    print(f"PyTorch {torch.__version__}, {ARGS.threads} threads; speed-ups over the fastest form of each kind")
    results, missed = [], []
    for case in all_cases(library):
        result = measure(library, case, settle)
        print_result(result)
        results.append(result)
        missed += [f"{result['name']}: {got:.1f}x {what}, but {least:g}x is asked"
                   for what, least, got in bounds(result) if got < least]
        torch._dynamo.reset()
        for block in case.blocks:
            library.free(block)
    if ARGS.json:
        Path(ARGS.json).write_text(json.dumps({"torch": torch.__version__, "threads": ARGS.threads,
                                               "results": results}, indent=1), encoding="utf-8")
    print(f"{len(results)} cases, {len(missed)} bounds missed")
    print("".join(f"  {line}\n" for line in missed), end="")
    return 1 if missed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
