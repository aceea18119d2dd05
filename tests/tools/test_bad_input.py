"""Broken and hostile files, wrong arguments: one line, a code, no partial file, no crash."""

import json
import os
import struct

import numpy as np
import pytest
import tensors


def header_file(moe, header, data=b"", name="x.safetensors"):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (moe.folder / name).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return name


def entry(begin=0, end=4, dtype="F32", shape=(1,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


BODY = b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'


def sized(number):
    return b'{"a":%s}' % BODY.replace(b"[1]", b"[%d]" % number)


HEADERS = {
    "overlap": ({"a": entry(0, 8, shape=(2,)), "b": entry(4, 8)}, b"\0" * 8, "overlaps"),
    "hole": ({"a": entry(0, 4), "b": entry(8, 12)}, b"\0" * 12, "leaves a hole"),
    "hole at the start": ({"a": entry(4, 8)}, b"\0" * 8, "leaves a hole"),
    "past the end": ({"a": entry(0, 4)}, b"\0" * 3, "cut off"),
    "bytes behind": ({"a": entry(0, 4)}, b"\0" * 5, "1 bytes follow the last tensor"),
    "backwards": ({"a": entry(4, 0)}, b"\0" * 4, "ends before it begins"),
    "size": ({"a": entry(0, 4, shape=(2,))}, b"\0" * 4, "needs 8"),
    "overflow": ({"a": entry(0, 4, shape=(2**62, 2**62))}, b"\0" * 4, "below 2^63"),
    "overflow hidden by 0": ({"a": entry(0, 4, shape=(2**62, 2**62, 0))}, b"\0" * 4, "below 2^63"),
    "half bytes": ({"a": entry(0, 1, "F4", (3,))}, b"\0", "no whole number"),
    "dtype": ({"a": entry(dtype="F31")}, b"\0" * 4, 'unknown dtype "F31"'),
    "huge number": (sized(2**64 - 1), b"\0" * 4, "past 2^63"),
    "huger number": (sized(10**23), b"\0" * 4, "fraction"),
    "negative": ({"a": entry(shape=(-1,))}, b"\0" * 4, "negative number"),
    "fraction": ({"a": entry(shape=(1.5,))}, b"\0" * 4, "fraction"),
    "missing": ({"a": {"dtype": "F32", "shape": [1]}}, b"\0" * 4, "all three"),
    "unknown": ({"a": entry() | {"x": 1}}, b"\0" * 4, "unknown"),
    "three offsets": ({"a": entry() | {"data_offsets": [0, 1, 4]}}, b"\0" * 4, "not two numbers"),
    "twice": (b'{"a":%s,"a":%s}' % (BODY, BODY), b"\0" * 4, "twice"),
    "field twice": (b'{"a":{"dtype":"F32",%s}' % BODY[1:] + b"}", b"\0" * 4, "twice"),
    "metadata number": ({"__metadata__": {"a": 1}}, b"", "number where none belongs"),
    "metadata deep": ({"__metadata__": {"a": {}}}, b"", "objects within"),
    "list": (b"[]", b"", "does not begin with {"),
    "null": (b'{"a":null}', b"", "null where none belongs"),
    "string": (b'{"a":"b"}', b"", "string where none belongs"),
    "no json": (b'{"a', b"", "no valid JSON"),
    "behind json": (b"{}x", b"", "no valid JSON"),
    "null bytes behind json": (b'{"a":%s}\0\0' % BODY, b"\0" * 4, "null byte"),
    "null byte and more": (b"{}\0{", b"", "null byte"),
    "surrogate": (b'{"\\ud800":%s}' % BODY, b"\0" * 4, "no valid JSON"),
    "many dimensions": ({"a": entry(0, 4, shape=[2] * 10000)}, b"\0" * 4, "(10000 sizes)"),
    "no utf-8": (b'{"\xff\xfe":%s}' % BODY, b"\0" * 4, "no valid JSON"),
    "deep lists": (b'{"a":' + b"[" * 100000, b"", "list where none belongs"),
    "deep objects": (b'{"a":' * 100000, b"", "unknown"),
    "deep offsets": (b'{"a":{"shape":' + b"[" * 100000, b"", "list where none belongs"),
    "dtype list": (b'{"a":{"dtype":["F32"]}}', b"", "no dtype but a list"),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADERS)
def test_safetensors_headers(moe, what):
    header, data, words = HEADERS[what]
    name = header_file(moe, header, data)
    message = moe.fails(3, "tensors", name, "-o", "out.safetensors")
    assert message.startswith("error: x.safetensors: ") and words in message, message
    assert len(message) < 400
    assert moe.files() == ["x.safetensors"]


def test_safetensors_lengths(moe):
    x = moe.folder / "x.safetensors"
    for content, words in (
        (b"", "0 bytes"),
        (b"1234567", "7 bytes"),
        (struct.pack("<Q", 1000) + b"{}", "cut off"),
        (struct.pack("<Q", 2**63), "the format allows"),
        (struct.pack("<Q", 100_000_001) + b"{}", "the format allows"),
        (struct.pack("<Q", 0), "does not begin with {"),
    ):
        x.write_bytes(content)
        assert words in moe.fails(3, "tensors", "x.safetensors")
    # What the format allows: spaces behind the JSON, no tensor at all, an empty one anywhere.
    for header in (b"{}", b"{}    ", b'{"__metadata__":{"format":"pt"}}'):
        moe.ok("tensors", header_file(moe, header))
    moe.ok("tensors", header_file(moe, {"a": entry(0, 4), "b": entry(4, 4, shape=(0,))}, b"\0" * 4))


def test_a_names_control_characters_stay_off_the_terminal(moe):
    header_file(moe, {"\x1b[2Jx\n": entry()}, b"\0" * 4)
    result = moe.ok("tensors", "x.safetensors")
    assert "\x1b" not in result.out and "\\x1b[2Jx\\x0a [1] float32" in result.out
    assert moe.json("tensors", "x.safetensors")["tensors"][0]["name"] == "\x1b[2Jx\n"
    message = moe.fails(3, "tensors", "x.safetensors", "-o", "out/")
    assert "makes no file name" in message and "\x1b" not in message


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x9b2Jx", "\\xc2\\x9b2Jx"),  # one character that a terminal obeys as it does ESC [
        ("a\u202eb", "a\\xe2\\x80\\xaeb"),  # writing from right to left
        ("x" * 119 + "\u00e9", "x" * 119 + "..."),  # cut between characters, not within one
        ("\u00e9\u6f22\U0001f642", "\u00e9\u6f22\U0001f642"),
    ],
)
def test_names_are_shown_as_plain_text(moe, name, shown):
    header_file(moe, {name: entry()}, b"\0" * 4)
    assert moe.ok("tensors", "x.safetensors").out == f"{shown} [1] float32, from 0 to 0\n"


def test_bytes_that_are_no_text_are_shown_as_numbers(moe):
    header = b"{'descr': '\xff\xc0\xafx', 'fortran_order': False, 'shape': (1,)}"
    (moe.folder / "x.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 4
    )
    assert '"\\xff\\xc0\\xafx"' in moe.fails(3, "tensors", "x.npy")


def test_arguments_control_characters_stay_off_the_terminal(moe):
    header_file(moe, {"a": entry()}, b"\0" * 4)
    for arguments in (("--as", "a=\x1b"), ("--as", "\x1b=int8"), ("-o", "\x1b"), ("\x1b",)):
        result = moe.run("tensors", "x.safetensors", *arguments)
        assert result.code in (2, 3) and "\x1b" not in result.err and "\\x1b" in result.err


@pytest.mark.parametrize("name", ["../x", "a/b", "/tmp/x", ".x", "", ".."])
def test_names_do_not_leave_the_folder(moe, name):
    header_file(moe, {"a": entry(), name: entry(4, 8)}, b"\0" * 8)
    assert "makes no file name" in moe.fails(3, "tensors", "x.safetensors", "-o", "out/")
    assert moe.files() == ["x.safetensors"]


def test_a_failed_run_leaves_no_folder(moe):
    chosen = ["--tensor=a=uint8:3", "--tensor=b=bfloat16:3"]
    assert ".npy has no bfloat16" in moe.fails(3, "gen", *chosen, "-o", "new/er/est/")
    assert moe.files() == []
    (moe.folder / "new").mkdir()
    (moe.folder / "new/mine").write_text("")
    moe.fails(3, "gen", *chosen, "-o", "new/er/")
    assert moe.files() == ["new", "new/mine"]


def test_a_folders_tensors_have_names_of_their_own(moe):
    chosen = ["--tensor=a=uint8:3", "--tensor=a=uint8:4"]
    assert 'two tensors "a"' in moe.fails(3, "gen", *chosen, "-o", "new/")
    many = [f"--tensor=a{i}=uint8:1" for i in range(1001)]
    assert "a folder takes at most 1000" in moe.fails(3, "gen", *many, "-o", "new/")
    assert moe.files() == []


NPY = {
    "big-endian": (lambda: tensors.npy_bytes(np.arange(3, dtype=">f4")), "big-endian"),
    "objects": (lambda: tensors.npy_bytes(np.array([{}]), allow_pickle=True), "Python objects"),
    "structured": (lambda: tensors.npy_bytes(np.zeros(2, [("a", "<f4")])), "structured dtype"),
    "text": (lambda: tensors.npy_bytes(np.array(["a"])), "needs booleans"),
    "complex128": (lambda: tensors.npy_bytes(np.zeros(2, complex)), "needs booleans"),
    "time": (lambda: tensors.npy_bytes(np.zeros(2, "datetime64[s]")), "needs booleans"),
    "version 4": (lambda: b"\x93NUMPY\x04\0" + tensors.npy_bytes(np.zeros(2))[8:], "version 4"),
    "minor": (lambda: b"\x93NUMPY\x01\x01" + tensors.npy_bytes(np.zeros(2))[8:], "version 1.1"),
    "subarray": (lambda: tensors.npy_bytes(np.zeros(2)).replace(b"'<f8'", b"('<f8',)"), "structured"),
    "version 0": (lambda: b"\x93NUMPY\x00\0" + tensors.npy_bytes(np.zeros(2))[8:], "version 0"),
    "cut in magic": (lambda: b"\x93NUM", "does not begin as"),
    "cut in length": (lambda: tensors.npy_bytes(np.zeros(2))[:9], "ends within"),
    "cut in header": (lambda: tensors.npy_bytes(np.zeros(2))[:40], "ends within"),
    "cut in data": (lambda: tensors.npy_bytes(np.zeros(2))[:-1], "15 bytes of data"),
    "more data": (lambda: tensors.npy_bytes(np.zeros(2)) + b"x", "17 bytes of data"),
    "long header": (lambda: b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", "at most 65536"),
}  # fmt: skip


@pytest.mark.parametrize("what", NPY)
def test_npy_files(moe, what):
    make, words = NPY[what]
    (moe.folder / "x.npy").write_bytes(make())
    message = moe.fails(3, "tensors", "x.npy", "-o", "y.npy")
    assert message.startswith("error: x.npy: ") and words in message, message
    assert moe.files() == ["x.npy"]


@pytest.mark.parametrize(
    "header",
    [
        "", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} {}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)",
        "{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (1,)}",
    ],
)  # fmt: skip
def test_npy_headers(moe, header):
    text = header.encode()
    (moe.folder / "x.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\0" * 4
    )
    message = moe.fails(3, "tensors", "x.npy")
    assert "\x1b" not in message and len(message) < 400


def test_paths(moe):
    os.mkfifo(moe.folder / "pipe.npy")
    (moe.folder / "empty").mkdir()
    (moe.folder / "text.txt").write_text("hello")
    assert "No such file" in moe.fails(3, "tensors", "nothing.npy")
    assert "no regular file" in moe.fails(3, "tensors", "pipe.npy")
    assert "no regular file" in moe.fails(3, "tensors", "x=/dev/zero")
    assert "without .npy files" in moe.fails(2, "tensors", "empty")
    assert "neither .safetensors nor .npy" in moe.fails(3, "tensors", "text.txt")
    tensors.save(moe.folder / "a.safetensors", a=np.zeros(2, np.float32), b=np.zeros(2, np.float32))
    assert "needs to end in" in moe.fails(3, "tensors", "a.safetensors", "-o", "out.bin")
    assert "a .npy file holds one" in moe.fails(3, "tensors", "a.safetensors", "-o", "out.npy")
    assert "cannot be written" in moe.fails(
        3, "tensors", "a.safetensors", "-o", "no/out.safetensors"
    )
    assert "no regular file" in moe.fails(3, "tensors", "a.safetensors:a", "-o", "pipe.npy")


WRONG = [
    ("", "verb: none given, but needs one of permute, "),
    ("frobnicate", 'verb: "frobnicate", but needs one of'),
    ("permute", "files is required"),
    ("permute a.safetensors", "--output is required"),
    ("permute a.safetensors -o o.safetensors --frob", "--frob"),
    ("permute a.safetensors -o o.safetensors", "tokens: missing, the files hold x"),
    ("permute tokens=a.safetensors indices=a.safetensors -o o.safetensors", "dtype float32"),
    ("permute-grad b.safetensors -o o.safetensors --ep-range 1-2", "needs BEGIN:END"),
    ("permute-grad b.safetensors -o o.safetensors --ep-rank 8/8", "0 <= RANK < RANKS"),
    ("permute-grad b.safetensors -o o.safetensors --ep-rank 1/8 --ep-range 1:2", "--ep-ra"),
    ("permute-grad b.safetensors -o o.safetensors --top-k 0", "--top-k"),
    ("permute-grad b.safetensors -o o.safetensors --top-k x", "--top-k"),
    ("permute-grad b.safetensors -o o.safetensors --top-k 1e3", "needs a whole number from 1"),
    ("permute-grad b.safetensors -o o.safetensors --top-k 1 --rows 9", "permute-grad has none"),
    ("permute-grad b.safetensors -o o.safetensors --ep-range= --top-k 1", "needs a value"),
    ("permute c.safetensors -o o.safetensors --top-k 3", "the indices have 2 for each token"),
    ("unpermute-grad c.safetensors -o o.safetensors --rows 9", "permuted_tokens has 4"),
    ("verify permute-grad b.safetensors --against b.safetensors --ulps=-1", "needs a whole number"),
    ("gen -o o.safetensors --seed=-1", "needs a whole number from 0"),
    ("gen -o o.safetensors --seed 18446744073709551616", "needs a whole number from 0"),
    ("bench --seconds nan", "needs a number from 0.01 to 600"),
    ("--frob permute a.safetensors", 'verb: "--frob", but needs one of'),
    ("tensors x=", 'error: "": cannot be read'),
    ("tensors a.safetensors --as y=int32", "needs NAME=DTYPE with one of x"),
    ("tensors a.safetensors --as x=int64", "its elements have 32 bits"),
    ("tensors a.safetensors --as x=int33", "no such type"),
    ("gen -o o.safetensors --shape gpt-9", "needs one of mixtral-8x7b, deepseek-v3"),
    ("gen -o o.safetensors --top-k 9", "there are 8"),
    ("gen -o o.safetensors --dtype int32", "needs float32, float16"),
    ("gen -o o.safetensors --routing empty-rank", "say which rank"),
    ("gen -o o.safetensors --tensor x=f32:3", "needs NAME=DTYPE:AxB"),
    ("gen -o o.safetensors --tensor x=float32:3x", "its shape needs"),
    ("gen -o o.safetensors --tensor x=float4:3", "no whole number of bytes"),
    ("gen -o o.safetensors --ep-range 5:99999", "needs 0 <= BEGIN <= END"),
    ("verify sort a.safetensors --against a.safetensors", "needs permute, permute-grad"),
    ("explain permute --kernel AVX9", "AVX9"),
    ("bench --dtype float64", "is not measured"),
    ("plot a.safetensors -o p.svg", "needs indices or tokens_per_expert"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_wrong_use(moe, arguments, words):
    x = np.zeros((2, 2), np.float32)
    tensors.save(moe.folder / "a.safetensors", x=x)
    indices = np.arange(2, dtype=np.int32)
    tensors.save(moe.folder / "b.safetensors", permuted_tokens_grad=x, sorted_indices=indices)
    tensors.save(
        moe.folder / "c.safetensors", tokens=x, indices=np.zeros((2, 2), np.int32),
        unpermuted_tokens_grad=x, permuted_tokens=np.zeros((4, 2), np.float32),
        sorted_indices=np.arange(4, dtype=np.int32),
    )  # fmt: skip
    assert words in moe.fails(3 if arguments == "tensors x=" else 2, *arguments.split())
    assert moe.files() == ["a.safetensors", "b.safetensors", "c.safetensors"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("tensors nothing.npy", 3), ("frobnicate", 2), ("--frob", 2), ("gen --frob", 2), ("", 2)],
)
def test_errors_in_json(moe, arguments, code):
    report = moe.run(*arguments.split(), "--json")
    assert report.code == code and report.json["exit_code"] == code
    assert report.err == f"error: {report.json['error']}\n"


def test_a_picture_replaces_no_tensors(moe):
    moe.ok("gen", "-o", "in.safetensors")
    before = (moe.folder / "in.safetensors").read_bytes()
    for command in (("plot", "in.safetensors", "-o"), ("bench", "--svg")):
        assert "needs to end in .svg" in moe.fails(3, *command, "in.safetensors")
    assert (moe.folder / "in.safetensors").read_bytes() == before


@pytest.mark.parametrize("expert", [2**31, 2**63 - 1, -(2**63)])
def test_experts_past_the_limits_are_not_routed(moe, expert):
    indices = np.array([[0, expert], [1, 0]])
    tensors.save(moe.folder / "in.safetensors", tokens=np.ones((2, 3), np.float32), indices=indices)
    facts = moe.json("permute", "in.safetensors", "--ep-rank", "1/2", "-o", "out.safetensors")
    assert facts["case"]["ep_range"] == [2, 3]
    facts = moe.json("plot", "in.safetensors", "-o", "p.svg")
    assert facts["tokens_per_expert"] == [2, 1] and facts["unrouted_slots"] == 1


def test_a_tensors_name_may_hold_what_separates(moe):
    header_file(moe, {"layer=3:x": entry()}, b"\0" * 4)
    assert moe.ok("tensors", "x.safetensors:layer=3:x").out.startswith("layer=3:x [1]")
    assert moe.ok("tensors", "y=x.safetensors:layer=3:x").out.startswith("y [1]")


def test_a_window_that_does_not_fit_is_the_librarys_message(moe):
    moe.ok("gen", "--for", "permute-grad", "--ep-range", "0:4", "-o", "in.safetensors")
    message = moe.fails(
        2,
        "permute-grad",
        "in.safetensors",
        "--top-k",
        2,
        "--ep-range",
        "0:5",
        "-o",
        "o.safetensors",
    )
    assert message == "error: permuted_tokens_grad: 4 rows, but the range [0, 5) needs at least 5"
    assert moe.files() == ["in.safetensors"]


def test_the_formats_own_name_is_no_tensors(moe):
    assert "__metadata__" in moe.fails(
        3, "gen", "--tensor", "__metadata__=uint8:3", "-o", "x.safetensors"
    )
    assert moe.files() == []


def test_long_names_with_one_beginning(moe):
    names = ["n" * 100 + end for end in "ab"]
    chosen = [f"--tensor={name}=uint8:{size}" for name, size in zip(names, (3, 4), strict=True)]
    moe.ok("gen", *chosen, "-o", "folder/")
    for name, size in zip(names, (3, 4), strict=True):
        assert np.load(moe.folder / "folder" / f"{name}.npy").shape == (size,)


def test_numbers_of_ranks_have_an_end(moe):
    rank = "1200000000000000000/1500000000000000000"
    message = moe.fails(2, "bench", "--num-tokens", "4", "--num-experts", "8", "--ep-rank", rank)
    assert "RANKS <= 16777216" in message


def test_counts_that_hide_an_unrouted_slot(moe):
    tensors.save(
        moe.folder / "in.safetensors",
        indices=np.array([[0], [100]], np.int32),
        tokens_per_expert=np.array([1, 1], np.int32),
    )
    assert "every slot to be routed" in moe.fails(2, "bench", "in.safetensors")
