"""The examples of docs/python.md: each block runs by itself and prints what stands below it."""

import re
import subprocess
import sys
from pathlib import Path

import moe_permute as mp
import pytest

DOCUMENT = Path(__file__).parents[2] / "docs/python.md"
BLOCK = re.compile(
    r"^```python runnable *(\w*)\n(.*?)^```\n(?:\n```text output\n(.*?)^```\n)?", re.M | re.S
)
EXAMPLES = BLOCK.findall(DOCUMENT.read_text())


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example(example):
    framework, program, expected = example
    if framework:
        pytest.importorskip(framework, reason=f"{framework} is not installed")
    if framework == "jax" and not mp.config()["jax"]:
        pytest.skip("moe_permute was built without jaxlib")
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == expected
