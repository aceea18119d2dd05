"""The installed program moe-permute, run as a user runs it.

MOE_PERMUTE names another one than build/install/bin/moe-permute.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(
    os.environ.get("MOE_PERMUTE", ROOT / "build/install/bin/moe-permute")
).absolute()
sys.path.insert(0, str(pathlib.Path(__file__).parent))


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)


class Moe:
    """Calls the program in a folder of the test's own."""

    def __init__(self, folder):
        self.folder = folder

    @staticmethod
    def command(*arguments):
        return [str(PROGRAM), *map(str, arguments)]

    def run(self, *arguments, **options):
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            **options,
        )
        return Result(done)

    def ok(self, *arguments, **options):
        result = self.run(*arguments, **options)
        assert result.code == 0, (arguments, result.out, result.err)
        return result

    def json(self, *arguments, code=0):
        result = self.run(*arguments, "--json")
        assert result.code == code, (arguments, result.out, result.err)
        return result.json

    def fails(self, code, *arguments, **options):
        """Fails with this code and one line on standard error, which is returned."""
        result = self.run(*arguments, **options)
        assert result.code == code, (arguments, result.code, result.out, result.err)
        lines = result.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("error: "), result.err
        assert result.out == ""
        return lines[0]

    def files(self):
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*"))


@pytest.fixture
def moe(tmp_path):
    yield Moe(tmp_path)
    for file in tmp_path.glob("*.safetensors"):
        if file.is_file() and file.stat().st_size > 10_000_000:
            file.unlink()  # pytest would keep it for three runs


@pytest.fixture(scope="session")
def program():
    return PROGRAM


@pytest.fixture(scope="session")
def root():
    return ROOT


def pytest_configure():
    if not PROGRAM.is_file():
        raise pytest.UsageError(f"{PROGRAM} is not there: run scripts/setup, or set MOE_PERMUTE")
