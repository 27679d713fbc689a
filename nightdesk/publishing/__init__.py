"""The site side: one port, an adapter per kind of site, and the check that a page is live."""
