"""What programs call: the API of gradio_client and curl, and tools for agents."""
