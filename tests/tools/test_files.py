"""Both formats, both directions, every dtype, bit for bit."""

import ml_dtypes
import numpy as np
import pytest
import tensors


@pytest.mark.parametrize("shape", [(8,), (3, 5, 8), (0, 4), (1,), ()], ids=str)
def test_safetensors_of_the_package_comes_back(moe, shape):
    count = int(np.prod(shape))
    wanted = {
        name: (name, shape, tensors.random_bytes(name, count))
        for name, (_, bits) in tensors.FORMATS.items()
        if count * bits % 8 == 0
    }
    ours = {n: t for n, t in wanted.items() if not tensors.package_writes(*t[:2])}
    theirs = {n: t for n, t in wanted.items() if n not in ours}
    tensors.save_raw(moe.folder / "in.safetensors", theirs)
    tensors.save_by_hand(moe.folder / "rest.safetensors", ours)
    files = ("in.safetensors", "rest.safetensors")
    listed = moe.json("tensors", *files, "-o", "out.safetensors")["tensors"]
    assert {t["name"]: (t["dtype"], tuple(t["shape"])) for t in listed} == {
        name: (name, shape) for name in wanted
    }
    assert tensors.load_raw(moe.folder / "out.safetensors") == {
        name: (tensors.FORMATS[name][0], shape, data) for name, (_, shape, data) in wanted.items()
    }


@pytest.mark.parametrize("name", tensors.NUMPY)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (0, 4), (2, 3, 4), ()], ids=str)
def test_npy_of_numpy_comes_back(moe, name, shape):
    data = tensors.random_bytes(name, int(np.prod(shape)))
    array = np.frombuffer(data, name).reshape(shape)
    np.save(moe.folder / "x.npy", array)
    moe.ok("tensors", "x.npy", "-o", "y.npy")
    # Not only the same array: the same file.
    assert (moe.folder / "y.npy").read_bytes() == (moe.folder / "x.npy").read_bytes()
    moe.ok("tensors", "x.npy", "-o", "y.safetensors")
    assert tensors.load_raw(moe.folder / "y.safetensors")["x"] == (
        tensors.FORMATS[name][0], shape, data,
    )  # fmt: skip
    moe.ok("tensors", "y.safetensors", "-o", "folder/")
    back = np.load(moe.folder / "folder/x.npy")
    assert back.dtype == array.dtype and back.shape == shape and back.tobytes() == data


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(moe, version):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    (moe.folder / "x.npy").write_bytes(tensors.npy_bytes(array, version=version))
    moe.ok("tensors", "x.npy", "-o", "y.npy")
    assert np.array_equal(np.load(moe.folder / "y.npy"), array)


def test_npy_in_fortran_order_is_read(moe):
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    np.save(moe.folder / "x.npy", np.asfortranarray(array))
    assert moe.json("tensors", "x.npy")["tensors"][0]["fortran_order"] is True
    moe.ok("tensors", "x.npy", "-o", "y.npy")
    back = np.load(moe.folder / "y.npy")
    assert np.array_equal(back, array) and back.flags.c_contiguous


def test_bfloat16_of_numpy_needs_a_name(moe):
    array = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    np.save(moe.folder / "x.npy", array)
    message = moe.fails(3, "tensors", "x.npy", "-o", "y.safetensors")
    assert "2 unnamed bytes" in message and "--as" in message
    moe.ok("tensors", "x.npy", "--as", "x=bfloat16", "-o", "y.safetensors")
    assert tensors.load_raw(moe.folder / "y.safetensors")["x"] == ("BF16", (2, 3), array.tobytes())
    # And in an operator, through an integer type too, as those write it who have no bfloat16.
    np.save(moe.folder / "tokens.npy", array.view(np.uint16))
    np.save(moe.folder / "indices.npy", np.array([[1], [0]], np.int32))
    message = moe.fails(2, "permute", "tokens.npy", "indices.npy", "-o", "out.safetensors")
    assert message.startswith("error: tokens: uint16, but needs float32")
    moe.ok("permute", "tokens.npy", "indices.npy", "--as", "tokens=bfloat16", "-o", "o.safetensors")
    assert (
        tensors.load(moe.folder / "o.safetensors")["permuted_tokens"].tobytes()
        == array[::-1].tobytes()
    )
    message = moe.fails(
        3, "permute", "tokens.npy", "indices.npy", "--as", "tokens=bfloat16", "-o", "o/"
    )
    assert ".npy has no bfloat16" in message


def test_float8_e5m2_of_ml_dtypes(moe):
    array = np.arange(4).astype(ml_dtypes.float8_e5m2)
    np.save(moe.folder / "x.npy", array)
    moe.ok("tensors", "x.npy", "-o", "y.safetensors")
    assert tensors.load_raw(moe.folder / "y.safetensors")["x"] == ("F8_E5M2", (4,), array.tobytes())


@pytest.mark.parametrize("name", tensors.FORMATS)
def test_gen_makes_every_dtype(moe, name):
    shape = "0x3" if tensors.FORMATS[name][1] % 8 else "5x3"
    moe.ok(
        "gen", "--tensor", f"x={name}:{shape}", "--tensor", f"y={name}:16", "-o", "a.safetensors"
    )
    moe.ok(
        "gen", "--tensor", f"x={name}:{shape}", "--tensor", f"y={name}:16", "-o", "b.safetensors"
    )
    made = tensors.load_raw(moe.folder / "a.safetensors")
    assert made["y"][:2] == (tensors.FORMATS[name][0], (16,))
    assert made == tensors.load_raw(moe.folder / "b.safetensors")
    assert len(set(made["y"][2])) > 1


def test_names_from_files_and_renames(moe):
    np.save(moe.folder / "a.npy", np.array([1, 2], np.int32))
    tensors.save(moe.folder / "b.safetensors", p=np.zeros(2, np.float32), q=np.ones(2, np.float32))
    names = lambda *files: [t["name"] for t in moe.json("tensors", *files)["tensors"]]  # noqa: E731
    assert names("a.npy", "b.safetensors") == ["a", "p", "q"]
    assert names("x=a.npy", "y=b.safetensors:q") == ["x", "y"]
    assert "say which" in moe.fails(2, "tensors", "y=b.safetensors")
    assert "given twice" in moe.fails(2, "tensors", "p=a.npy", "b.safetensors")
    assert 'no tensor "r"' in moe.fails(2, "tensors", "b.safetensors:r")
