"""gen, explain, bench, plot, doctor, and what stands around the verbs."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import numpy as np
import pytest
import tensors

VERBS = [
    "permute", "permute-grad", "unpermute", "unpermute-grad", "verify", "explain", "tensors", "gen",
    "bench", "plot", "doctor",
]  # fmt: skip


def test_gen_routings(moe):
    def counts(*options):
        moe.ok(
            "gen",
            "--num-tokens",
            2000,
            "--top-k",
            4,
            "--num-experts",
            32,
            "--hidden-size",
            1,
            *options,
            "-o",
            "x.safetensors",
        )
        made = tensors.load(moe.folder / "x.safetensors")
        ids = made["indices"]
        per_expert = np.bincount(ids.reshape(-1), minlength=32)
        assert np.array_equal(per_expert, made["tokens_per_expert"])
        if "all-to-one" not in options:
            assert all(len(set(row)) == 4 for row in ids.tolist())
        return ids, per_expert

    ids, per_expert = counts("--seed", 7)
    assert per_expert.min() > 150 and per_expert.max() < 350
    assert np.array_equal(ids, counts("--seed", 7)[0]) and not np.array_equal(
        ids, counts("--seed", 8)[0]
    )
    _, zipf = counts("--routing", "zipf")
    assert zipf.max() > 4 * zipf.mean()
    assert counts("--routing", "all-to-one")[1].tolist() == [8000] + [0] * 31
    _, idle = counts("--routing", "empty-rank", "--ep-rank", "3/8")
    assert not idle[12:16].any() and idle[:12].all() and idle[16:].all()


@pytest.mark.parametrize("dtype", tensors.FLOATS)
def test_gen_makes_what_the_operators_read(moe, dtype):
    probs = "float64" if dtype == "float64" else "float32"
    for op in ("permute", "permute-grad", "unpermute", "unpermute-grad"):
        moe.ok(
            "gen",
            "--for",
            op,
            "--dtype",
            dtype,
            "--probs-dtype",
            probs,
            "--ep-rank",
            "1/4",
            "-o",
            "in.safetensors",
        )
        moe.ok(op, "in.safetensors", "--ep-rank", "1/4", "--top-k", 2, "-o", "out.safetensors")
    made = tensors.load(moe.folder / "in.safetensors")
    assert np.allclose(made["probs"].sum(axis=1), 1, atol=1e-6)
    assert np.abs(made["unpermuted_tokens_grad"].astype(np.float64)).max() <= 1


def test_explain(moe):
    moe.ok(
        "gen",
        "--for",
        "all",
        "--num-tokens",
        3,
        "--top-k",
        2,
        "--num-experts",
        4,
        "-o",
        "in.safetensors",
    )
    report = moe.json(
        "explain",
        "permute-grad",
        "in.safetensors",
        "--ep-rank",
        "0/2",
        "--num-experts",
        4,
        "--ranks",
        2,
    )
    rows = tensors.load(moe.folder / "in.safetensors")["sorted_indices"].tolist()
    begin, end = report["case"]["ep_range"]
    assert begin == 0 and [m["row"] for m in report["map"]] == rows
    for entry in report["map"]:
        inside = entry["row"] < end
        assert entry["local_row"] == (entry["row"] if inside else None)
        assert entry["rank"] == (0 if inside else 1) and entry["token"] == entry["slot"] // 2
    assert report["bytes_written"] == 3 * 64 * 4 + 6 * 4
    assert any("takes it" in line for line in report["kernels"])
    # A case that no file holds.
    report = moe.json(
        "explain",
        "unpermute",
        "--shape",
        "deepseek-v3",
        "--num-tokens",
        4096,
        "--dtype",
        "bfloat16",
        "--ep-rank",
        "1/8",
    )
    assert report["case"]["hidden_size"] == 7168 and "map" not in report
    assert report["kernel"] in " ".join(report["kernels"])
    forced = moe.json("explain", "unpermute", "--kernel", "portable")
    assert forced["kernel"] == "portable"


def test_explain_measures_a_floor(moe):
    report = moe.json("explain", "permute", "--measure")
    total = report["bytes_read"] + report["bytes_written"]
    assert report["floor"]["seconds"] == pytest.approx(total / report["floor"]["bytes_per_second"])


def svg(path):
    text = path.read_text()
    root = xml.etree.ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme:dark" in text and "href" not in text and "url(" not in text
    return text


def test_plot(moe):
    report = moe.json(
        "plot",
        "--num-tokens",
        512,
        "--num-experts",
        64,
        "--routing",
        "zipf",
        "--ranks",
        8,
        "-o",
        "p.svg",
    )
    counts = report["tokens_per_expert"]
    assert report["largest_expert"] == max(counts) and report["expert_factor"] == pytest.approx(
        max(counts) / (1024 / 64)
    )
    ranks = [sum(counts[r * 8 : r * 8 + 8]) for r in range(8)]
    assert report["largest_rank"] == max(ranks) and report["empty_ranks"] == 0
    text = svg(moe.folder / "p.svg")
    assert len(re.findall('class="bar"', text)) == 64 and "rank 7" in text
    # A small one shows where each copy goes; from files, with slots that go nowhere.
    np.save(moe.folder / "indices.npy", np.array([[0, 3], [3, -1], [1, 0]]))
    report = moe.json("plot", "indices.npy", "--num-experts", 4, "--ranks", 2, "-o", "q.svg")
    assert report["unrouted_slots"] == 1 and report["tokens_per_expert"] == [2, 1, 0, 2]
    text = svg(moe.folder / "q.svg")
    assert text.count('class="link') == 6 and "not routed" in text


def test_bench(moe):
    moe.ok(
        "gen",
        "--num-tokens",
        64,
        "--hidden-size",
        128,
        "--dtype",
        "bfloat16",
        "-o",
        "in.safetensors",
    )
    report = moe.json("bench", "in.safetensors", "--seconds", 0.01, "--svg", "chart.svg")
    assert [o["operator"] for o in report["operators"]] == VERBS[:4]
    assert report["case"]["hidden_size"] == 128 and report["case"]["dtype"] == "bfloat16"
    for op in report["operators"]:
        assert op["bytes"] > 0 and op["share_of_floor"] == pytest.approx(
            op["floor_seconds"] / op["seconds"]
        )
    assert "permute-grad" in svg(moe.folder / "chart.svg")
    one = moe.json(
        "bench",
        "--operator",
        "unpermute",
        "--num-tokens",
        32,
        "--routing",
        "all-to-one",
        "--seconds",
        0.01,
    )
    assert [o["operator"] for o in one["operators"]] == ["unpermute"]


def test_doctor(moe, program):
    report = moe.json("doctor", "--no-measure")
    assert "portable" in report["cpu_targets"] and report["threads"] >= 1
    if (program.parent.parent / "acl").is_dir():
        assert report["drop_in"]["usable"] is True
    moved = {**os.environ, "ASCEND_HOME_PATH": str(moe.folder)}
    result = moe.ok("doctor", "--no-measure", env=moved)
    assert "is not there" in result.out
    (moe.folder / "lib64").mkdir()
    (moe.folder / "lib64/libascendcl.so").write_text("no library")
    result = moe.run("doctor", "--no-measure", env=moved)
    assert result.code == 1 and "does not load" in result.out


def test_doctor_measures_memory(moe):
    assert moe.json("doctor")["memory"]["bytes_per_second"] > 1e8


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help(moe, root, verb):
    """The help of every verb, as it was read and found good. UPDATE_GOLDEN=1 writes it anew."""
    result = moe.ok(*verb.split(), "--help")
    golden = root / f"tests/tools/golden/help{'-' if verb else ''}{verb}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(result.out)
    assert result.out == golden.read_text()


def test_messages(moe, root):
    """What people see of a whole round, with times and kernels left out."""
    commands = [
        "gen --for all --num-tokens 4 --num-experts 4 --hidden-size 8 -o in.safetensors",
        "permute in.safetensors --ep-rank 1/2 --num-experts 4 -o out/",
        "tensors in.safetensors:indices",
        "explain permute-grad in.safetensors --ep-range 0:8 --ranks 2 --kernel portable",
        "verify permute in.safetensors --against out/ --ep-rank 1/2 --num-experts 4",
        "verify permute in.safetensors --against out/ --ep-rank 0/2 --num-experts 4",
        "plot in.safetensors -o p.svg --ranks 2",
    ]
    said = ""
    for command in commands:
        result = moe.run(*command.split())
        said += f"$ moe-permute {command}\n{result.out}{result.err}exit code {result.code}\n\n"
    said = re.sub(r"kernel \w+, [0-9.]+ [mu]?s", "kernel K, TIME", said)
    said = re.sub(r"(?m)^  (AVX|SSE|NEON|SVE|EMU|portable).*\n", "", said)
    golden = root / "tests/tools/golden/messages.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(said)
    assert said == golden.read_text()


def test_quiet_and_no_progress_where_nobody_watches(moe):
    result = moe.ok("gen", "--tensor", "x=float32:3000x10000", "-q", "-o", "x.safetensors")
    assert result.out == "" and result.err == ""


def test_progress_on_a_terminal(moe):
    script = shutil.which("script")
    if not script:
        pytest.skip("needs the program script for a terminal")
    command = " ".join(
        moe.command("gen", "--tensor", "x=float32:4000x50000", "-o", "x.safetensors")
    )
    done = subprocess.run(
        [script, "-qec", command, "/dev/null"], cwd=moe.folder, capture_output=True, text=True
    )
    assert done.returncode == 0 and "making x, " in done.stdout, done.stdout[:500]


def test_version_and_moved_installation(moe, program):
    assert re.fullmatch(r"moe-permute \d+\.\d+\.\d+\n", moe.ok("--version").out)
    if not (program.parent.parent / "lib").is_dir():
        pytest.skip("not an installation")
    shutil.copytree(program.parent.parent, moe.folder / "elsewhere", symlinks=True)
    done = subprocess.run(
        [moe.folder / "elsewhere/bin/moe-permute", "--version"], capture_output=True
    )
    assert done.returncode == 0


def share(program):
    folder = program.parent.parent / "share"
    if not folder.is_dir():
        pytest.skip("not an installation")
    return folder


def test_man_page(program):
    page = share(program) / "man/man1/moe-permute.1"
    text = page.read_text()
    for verb in VERBS:
        assert f".SS {verb}".replace("-", "\\-") in text
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    # Bold is a sequence for the terminal, or a letter struck over itself.
    plain = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)
    assert "moe-permute verify OPERATOR" in " ".join(plain.split())


def complete(program, *words):
    file = share(program) / "bash-completion/completions/moe-permute"
    line = " ".join(f"'{w}'" for w in words)
    script = (
        f"source '{file}'; COMP_WORDS=(moe-permute {line}); COMP_CWORD={len(words)}; "
        'COMPREPLY=(); _moe_permute; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, cwd="/")
    assert done.returncode in (0, 1) and done.stderr == "", done.stderr
    return done.stdout.split()


def test_bash_completion(program):
    assert complete(program, "unp") == ["unpermute", "unpermute-grad"]
    assert complete(program, "verify", "perm") == ["permute", "permute-grad"]
    assert "--ep-rank" in complete(program, "permute", "--ep") and "--against" in complete(
        program, "verify", "--a"
    )
    assert complete(program, "gen", "--routing", "z") == ["zipf"]
    assert complete(program, "gen", "--shape", "deep") == ["deepseek-v3"]
    assert "tmp" in complete(program, "permute", "tm")


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("zsh", "zsh/site-functions/_moe-permute"),
        ("fish", "fish/vendor_completions.d/moe-permute.fish"),
    ],
)
def test_other_completions(program, shell, file):
    path = share(program) / file
    text = path.read_text()
    for verb in VERBS:
        assert verb in text
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", path], capture_output=True).returncode == 0
