"""What MkDocs is told to do beside its configuration."""

import re
from typing import Any

_MARKS = re.compile(r"^( *```python) (?:no|needs)-[a-z]+: .*$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Drop what examples say to tests; the highlighter does not know it."""
    return _MARKS.sub(r"\1", markdown)
