"""Measurements; not shipped. See README.md."""
