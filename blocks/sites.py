"""Sites as blocks; the document's name is the site's name."""

from __future__ import annotations

from pathlib import Path

from prefect.blocks.core import Block
from pydantic import ConfigDict, Field

from nightdesk.config import StaticSiteSettings


class StaticSite(Block):
    """A folder of pages, served by anything that serves files."""

    model_config = ConfigDict(extra="forbid")
    _block_type_name = "Static Site"
    _block_type_slug = "static-site"

    title: str
    tagline: str = ""
    author: str = ""
    folder: str | None = Field(default=None, description="Empty: `sites/<name>` in the data folder.")
    base_url: str | None = Field(default=None, description="Empty: Nightdesk's own loopback server.")

    def settings(self) -> StaticSiteSettings:
        """The same as settings.

        Raises:
            pydantic.ValidationError: if a value cannot be used.
        """
        return StaticSiteSettings(
            title=self.title,
            tagline=self.tagline,
            author=self.author,
            folder=Path(self.folder) if self.folder else None,
            base_url=self.base_url or None,
        )
