"""Objects that lie. Whatever happens, it is a Python exception, and the interpreter lives on."""

import ctypes
import itertools
import random

import moe_permute as mp
import numpy as np
import pytest

TOKENS = np.ones((4, 3), np.float32)
INDICES = np.array([[1, 0], [2, 0], [2, 1], [0, 2]], np.int32)
SORTED = np.arange(8, dtype=np.int32)

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
NAMES = [b"wrong", b"used_dltensor", b"used_dltensor_versioned", b"dlpack_exchange_api"]


def capsule(name):
    return new_capsule(1, name, None)


class Gives:
    """An object whose __dlpack__ gives (or raises) what it was told."""

    def __init__(self, value, device=(1, 0)):
        self.value, self.device = value, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


def used_capsule():
    lent = TOKENS.copy().__dlpack__()
    np.from_dlpack(Gives(lent))
    return lent


class NoAttributes:
    def __getattribute__(self, name):
        raise RuntimeError(name)


class BadClass:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class NotCallable:
    __dlpack__ = 5
    __dlpack_device__ = 5


class BadNamespace:
    """A fine array, of a namespace that fails."""

    def __init__(self, namespace):
        self.namespace = namespace

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return TOKENS.copy().__dlpack__(**options)

    def __array_namespace__(self):
        if isinstance(self.namespace, BaseException):
            raise self.namespace
        return self.namespace


class Interface:
    """Lies by the protocol that nothing here reads."""

    def __init__(self, **interface):
        self.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": (4, 3)} | interface


class FakeTensor:
    requires_grad = property(lambda self: 1 / 0)
    __module__ = 5
    __dlpack__ = None


HOSTILE = {
    **{f"capsule {name!r}": Gives(capsule(name)) for name in NAMES},
    "used": Gives(used_capsule()),
    "None": Gives(None),
    "int": Gives(12345),
    "raises": Gives(RuntimeError("no")),
    "raises TypeError": Gives(TypeError("no")),
    "raises BufferError": Gives(BufferError("no")),
    "a device that is none": Gives(None, device="cpu"),
    "a device of texts": Gives(None, device=("cpu", 0)),
    "a device beyond ints": Gives(None, device=(2**80, 0)),
    "another device": Gives(None, device=(2, 0)),
    "no attributes": NoAttributes(),
    "bad class": BadClass(),
    "not callable": NotCallable(),
    "a lying interface": Interface(data=(0xDEADBEEF, False), shape=(2**40, 2**40)),
    "a tensor that is none": FakeTensor(),
    "a class": type,
    "a module": np,
    "an object array": np.array([None] * 3, object),
    "a void array": np.zeros((4, 3), "V4"),
    "a record": np.zeros((4, 3), [("a", "f4")]),
    "a masked array of bools": np.ma.masked_array(np.ones((4, 3), bool)),
    "a released view": memoryview(b"1234"),
    "a scalar": np.float32(1),
}
HOSTILE["a released view"].release()


def all_calls(x):
    """Call everything with x in each place."""
    positions = [
        (mp.permute, [TOKENS, INDICES, None], ["ep_range", "num_experts", "out"]),
        (mp.permute_grad, [TOKENS, SORTED[:4], 1, None], ["ep_range", "out"]),
        (mp.unpermute, [TOKENS, SORTED[:4], None], ["top_k", "ep_range", "out"]),
        (mp.unpermute_grad, [TOKENS, SORTED[:4], None, None], ["top_k", "ep_range", "out"]),
        (mp.sort_indices, [INDICES], ["num_experts", "out"]),
        (mp.expert_range, [[1, 2], 0, 1], []),
        (mp.ep_range_of_rank, [[1, 2], 0, 1], []),
        (mp.set_num_threads, [1], []),
    ]
    for function, arguments, keywords in positions:
        for i in range(len(arguments)):
            yield function, [*arguments[:i], x, *arguments[i + 1 :]], {}
        for keyword in keywords:
            yield function, arguments, {keyword: x}
        if "out" in keywords and function is not mp.unpermute:
            arity = 3 if function is mp.permute else 2
            for i in range(arity):
                out = tuple(x if i == j else None for j in range(arity))
                yield function, arguments, {"out": out}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_place_survives(name):
    for function, arguments, keywords in all_calls(HOSTILE[name]):
        with pytest.raises(Exception) as caught:
            function(*arguments, **keywords)
        assert not isinstance(caught.value, SystemError)
    mp.set_num_threads(None)


def test_the_producer_s_own_error_comes_through():
    for error in (RuntimeError("mine"), BufferError("mine"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            mp.permute(Gives(error), INDICES)
        assert caught.value is error


@pytest.mark.parametrize("error", [RuntimeError("no"), ValueError("no")])
def test_a_namespace_that_raises(error):
    with pytest.raises(type(error), match="no"):
        mp.permute(BadNamespace(error), INDICES)


def test_a_namespace_that_is_none():
    class Empty:
        from_dlpack = None

    assert type(mp.permute(BadNamespace(Empty), INDICES)[0]) is np.ndarray
    assert type(mp.permute(BadNamespace(5), INDICES)[0]) is np.ndarray


class Fails:
    """A namespace whose arrays cannot be made."""

    @staticmethod
    def from_dlpack(array):
        raise OverflowError("made none")


def test_a_namespace_that_makes_nothing():
    with pytest.raises(OverflowError, match="made none"):
        mp.permute(BadNamespace(Fails), INDICES)


def test_a_namespace_that_keeps_what_it_gets():
    kept = []

    class Keeps:
        from_dlpack = staticmethod(lambda array: kept.append(array) or np.from_dlpack(array))

    rows = mp.permute(BadNamespace(Keeps), INDICES)[0]
    del rows
    arrays = [np.from_dlpack(array) for array in kept]
    assert any(a.shape == (8, 3) and (a == 1).all() for a in arrays)


def test_an_index_that_changes_its_argument():
    """An __index__ that runs code in the middle of a call."""
    out = [np.zeros((8, 3), np.float32), None, None]

    class Index:
        def __index__(self):
            out.clear()
            return 3

    mp.permute(TOKENS, INDICES, num_experts=Index(), out=tuple(out))
    with pytest.raises(ValueError, match="ep_range"):
        mp.permute(TOKENS, INDICES, ep_range=[Index(), Index(), Index()])

    class Shrinks(list):
        def __getitem__(self, i):
            self.clear()
            return 0

    assert len(mp.permute(TOKENS, INDICES, ep_range=Shrinks([0, 1]))[0]) == 0


def test_indices_may_hold_anything():
    """Contents are data: whatever sorted_indices names, nothing outside the rows is read."""
    rng = np.random.default_rng(3)
    extremes = np.array([-(2**63), -1, 0, 3, 4, 2**31, 2**63 - 1])
    for _ in range(50):
        wild = rng.choice(extremes, 8)
        for k, window in itertools.product((1, 2, 4), (None, (0, 4), (2, 6))):
            mp.permute_grad(TOKENS, wild, k, TOKENS[:, 0], ep_range=window)
            mp.unpermute(TOKENS, wild, top_k=k, ep_range=window)
            grad = np.ones((8 // k, 3), np.float32)
            mp.unpermute_grad(grad, wild, TOKENS, np.ones((8 // k, k), np.float32), ep_range=window)
        mp.permute(TOKENS, wild.reshape(4, 2), num_experts=int(rng.integers(0, 9)))


def random_array(rng):
    dtype = rng.choice(["f4", "f2", "f8", "i4", "i8", "?", "c8", "u2", "O"])
    memory = np.zeros(64, dtype)
    ndim = rng.randrange(4)
    shape = [rng.choice([0, 1, 2, 3, 2**20, 2**40]) for _ in range(ndim)]
    strides = [rng.choice([0, 0, 1, 4, 8, -4]) if n > 3 else 0 for n in shape]
    strides = [s if n <= 1 or abs(s) * n < 64 else 0 for s, n in zip(strides, shape, strict=True)]
    try:
        return np.lib.stride_tricks.as_strided(memory, shape, strides)
    except (ValueError, OverflowError):
        return memory


def random_argument(rng):
    return rng.choice(
        [
            lambda: random_array(rng),
            lambda: rng.choice([None, 0, 1, 2, -1, 2**31, 2**63, 2**70, True, 1.5, "x", ()]),
            lambda: (rng.randrange(-2, 9), rng.randrange(-2, 9)),
            lambda: rng.choice([TOKENS, INDICES, SORTED]),
        ]
    )()


@pytest.mark.parametrize("seed", range(20))
def test_random_arguments(seed):
    rng = random.Random(seed)
    for _ in range(200):
        # The most that a valid call may make of these is small: an output has a window's rows.
        keywords = {"ep_range": (0, rng.randrange(3))}
        if rng.random() < 0.5:
            keywords = {"ep_range": random_argument(rng)}
        arguments = [random_argument(rng) for _ in range(rng.randrange(2, 5))]
        sizes = [a.size for a in arguments if isinstance(a, np.ndarray)]
        if max(sizes, default=0) > 2**30:
            continue
        function = rng.choice([mp.permute, mp.permute_grad, mp.unpermute, mp.unpermute_grad])
        try:
            function(*arguments, **keywords)
        except (TypeError, ValueError, MemoryError):
            pass


class Interrupted:
    """Ctrl-C arrives while its code runs."""

    def __len__(self):
        raise KeyboardInterrupt

    def __index__(self):
        raise KeyboardInterrupt


def test_ctrl_c_in_an_argument_comes_through():
    for ep_range in (Interrupted(), (Interrupted(), 2), [0, Interrupted()]):
        with pytest.raises(KeyboardInterrupt):
            mp.permute(np.ones((2, 3), np.float32), INDICES, ep_range=ep_range)
