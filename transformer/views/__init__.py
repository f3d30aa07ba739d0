"""What the page shows of a run: a folder for each question, with the views that answer it."""
