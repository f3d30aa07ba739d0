"""The Gradio page: its layout, files, and the requests of its scripts."""
