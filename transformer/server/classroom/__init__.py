"""Classes: a teacher's page, and phones that answer."""
