"""README.md as a package index shows it: no pictures, and no links, that only the repository can resolve.

Run by hatchling when the package is built. Where `[project.urls]` has a Source, the links lead there instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class IndexReadme(MetadataHookInterface):
    """Give the package its description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme, changed where it links to files of the repository."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"^!\[[^\]]*\]\((?!https:)[^)]*\)\n\n?", "", text, flags=re.MULTILINE)
        source = metadata.get("urls", {}).get("Source")
        link = rf"[\1]({source}/blob/main/\2)" if source else r"\1"
        text = re.sub(r"\[([^\]]+)\]\((?!https:|#)([^)]+)\)", link, text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
