"""Which requests are let in, within which limits, and how each ends."""
