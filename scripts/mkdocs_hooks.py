"""What MkDocs is told to do beside its configuration."""

import re
from typing import Any

_NO_RUN = re.compile(r"^(```python) no-run$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Drop the mark of examples that tests do not run; the highlighter does not know it."""
    return _NO_RUN.sub(r"\1", markdown)
