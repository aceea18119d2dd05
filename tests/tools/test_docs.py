"""Every example of the README and of docs/cli.md that calls the program, run as it stands there."""

import os
import re
import subprocess
import sys

import pytest

DOCUMENTS = ["README.md", "docs/cli.md"]
# An example, and what it must print where that stands right behind it.
EXAMPLE = re.compile(r"^```sh runnable\n(.*?)^```$(?:\n\n```text output\n(.*?)^```$)?", re.M | re.S)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples(tmp_path, root, program, document):
    path = f"{program.parent}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    examples = EXAMPLE.findall((root / document).read_text())
    assert examples
    for commands, output in examples:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=tmp_path, text=True, capture_output=True, timeout=300,
            env={**os.environ, "PATH": path},
        )  # fmt: skip
        assert done.returncode == 0, (commands, done.stdout, done.stderr)
        if output:
            assert done.stdout == output


def test_no_example_is_left_out(root):
    """Whatever calls the program in a document stands in a block that is run."""
    for document in DOCUMENTS:
        text = (root / document).read_text()
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
            calls = re.findall(r"^moe-permute .*", block, re.M)
            assert all("--help" in call for call in calls), (document, block)
