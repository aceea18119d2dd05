"""The examples of docs/torch.md and docs/compat.md, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

DOCS = Path(__file__).resolve().parents[2] / "docs"


def examples(page):
    """Each block of code with empty lines before it, so that errors name the page's lines."""
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield "\n" * text[: block.start(1)].count("\n") + block[1]


@pytest.mark.parametrize(("name", "least"), [("torch.md", 4), ("compat.md", 2)])
def test_examples_of_the_page_run(name, least, tmp_path):
    page, variables = DOCS / name, {}
    if not page.exists():
        pytest.skip("the documentation is not here")
    found = list(examples(page))
    assert len(found) >= least
    for code in found:
        # torch.compile reads a function's source from its file.
        copy = tmp_path / f"{page.stem}.py"
        copy.write_text(code, encoding="utf-8")
        exec(compile(code, str(copy), "exec"), variables)
