"""No partial file: full disks, limits, folders that nobody may write, signals, files cut short."""

import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time

import pytest


def big(moe, *more):
    return ["gen", "--tensor", "x=float32:4000x40000", "-o", "x.safetensors", *more]


def test_a_size_limit_is_an_error_not_a_signal(moe):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    message = moe.fails(3, *big(moe), preexec_fn=limit)
    assert "there is no room for 640 MB" in message
    assert moe.files() == []


def test_a_full_disk(moe, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False
        ).returncode
    ):
        pytest.skip("needs to mount a small disk")
    try:
        message = moe.fails(3, "gen", "--tensor", "x=float32:1000x1000", "-o", "disk/x.safetensors")
        assert "no room for 4 MB: No space left on device" in message
        assert os.listdir(disk) == []
        # What was there before stays.
        moe.ok("gen", "--tensor", "x=float32:1000", "-o", "disk/x.safetensors")
        before = (disk / "x.safetensors").read_bytes()
        moe.fails(3, "gen", "--tensor", "x=float32:1000x1000", "-o", "disk/x.safetensors")
        assert (disk / "x.safetensors").read_bytes() == before and os.listdir(disk) == [
            "x.safetensors"
        ]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_full_standard_output(moe):
    moe.ok("gen", "-o", "in.safetensors")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*moe.command("tensors", "in.safetensors")],
            cwd=moe.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 3 and "standard output: cannot be written" in done.stderr


@pytest.fixture
def nobody(moe):
    """Runs the program, in a folder that everybody may enter, as a user who may not do everything."""
    if os.geteuid() != 0:
        yield moe
        return
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        user = type(moe)(pathlib.Path(folder))
        user.command = lambda *arguments: [*prefix, *moe.command(*arguments)]
        if subprocess.run(user.command("--version"), capture_output=True).returncode != 0:
            pytest.skip("another user cannot reach the program")
        yield user


def test_a_folder_that_one_may_not_write(nobody):
    (nobody.folder / "closed").mkdir(mode=0o555)
    for place in ("closed/x.safetensors", "closed/new/"):
        message = nobody.fails(3, "gen", "-o", place)
        assert message.startswith(f"error: {place.rstrip('/')}") and "Permission denied" in message
    assert nobody.files() == ["closed"]


def test_what_one_may_not_read(nobody):
    (nobody.folder / "closed").mkdir()
    (nobody.folder / "closed/x.npy").write_bytes(b"")
    (nobody.folder / "x.safetensors").write_bytes(b"")
    os.chmod(nobody.folder / "closed", 0o000)
    os.chmod(nobody.folder / "x.safetensors", 0o000)
    for place in ("closed", "closed/x.npy", "x.safetensors"):
        message = nobody.fails(3, "tensors", place)
        assert message == f"error: {place}: cannot be read: Permission denied"
    os.chmod(nobody.folder / "closed", 0o700)


def test_an_unwritable_place(moe):
    assert "cannot be written" in moe.fails(3, "gen", "-o", "/proc/x.safetensors")
    assert "cannot be made" in moe.fails(3, "gen", "-o", "/proc/x/")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_signals(moe, which):
    (moe.folder / "x.safetensors").write_bytes(b"what was there before")
    # A shell lets what it runs in the background ignore Ctrl-C.
    run = subprocess.Popen(
        moe.command(*big(moe)), cwd=moe.folder, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(which, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(moe.files()) < 2 and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    assert len(moe.files()) == 2, "never saw the temporary file"
    run.send_signal(which)
    run.communicate()
    assert run.returncode == -which
    assert moe.files() == ["x.safetensors"]
    assert (moe.folder / "x.safetensors").read_bytes() == b"what was there before"


def test_a_signal_leaves_no_folder(moe):
    run = subprocess.Popen(
        moe.command("gen", "--tensor", "x=float32:4000x40000", "-o", "new/er/"),
        cwd=moe.folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(moe.files()) < 3 and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    assert len(moe.files()) == 3, "never saw the temporary file"
    run.send_signal(signal.SIGINT)
    assert run.wait() == -signal.SIGINT
    assert moe.files() == []


def test_an_input_cut_short_meanwhile(moe):
    moe.ok(*big(moe))
    run = subprocess.Popen(
        moe.command("tensors", "x.safetensors", "-o", "y.safetensors"), cwd=moe.folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(0.1)
    os.truncate(moe.folder / "x.safetensors", 1000)
    _, err = run.communicate()
    # Wherever it was: before (the header says so), or in the middle (the mapping does).
    assert run.returncode == 3 and "cut" in err, (run.returncode, err)
    assert moe.files() == ["x.safetensors"]


def test_a_link_stays_a_link(moe):
    (moe.folder / "real").mkdir()
    (moe.folder / "real/x.safetensors").write_bytes(b"old")
    (moe.folder / "x.safetensors").symlink_to("real/x.safetensors")
    moe.ok("gen", "-o", "x.safetensors")
    assert (moe.folder / "x.safetensors").is_symlink()
    assert (moe.folder / "real/x.safetensors").read_bytes() != b"old"
    assert len(moe.files()) == 3


def test_an_input_may_be_the_output(moe):
    moe.ok("gen", "-o", "x.safetensors")
    before = moe.json("tensors", "x.safetensors")["tensors"]
    moe.ok("tensors", "x.safetensors", "-o", "x.safetensors")
    assert moe.json("tensors", "x.safetensors")["tensors"] == before


def test_memory_stays_near_the_files_size(moe):
    """Address space for the library, twice the file, and no room for a copy of it besides."""
    moe.ok(
        "gen",
        "--for",
        "permute",
        "--num-tokens",
        8192,
        "--top-k",
        2,
        "--hidden-size",
        4096,
        "-o",
        "in.safetensors",
    )
    size = (moe.folder / "in.safetensors").stat().st_size
    run = subprocess.Popen(
        moe.command("permute", "in.safetensors", "-o", "out.safetensors"),
        cwd=moe.folder,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = 0
    assert status == 0
    total = size + (moe.folder / "out.safetensors").stat().st_size
    assert usage.ru_maxrss * 1024 < 1.1 * total + (64 << 20)
