"""Small Transformers written from scratch, with everything that happens inside them kept.

For example:

    import transformer

    model = transformer.load("stories")
    run = model.generate("Once upon a time", max_new_tokens=40, temperature=0.8, top_k=40, seed=0)
    run.text, run.tokens, run.steps[3].candidates
    run.trace.weights("decoder", "self")      # (L, B, H, Tq, Tk), rows sum to 1
"""

from transformer.checkpoint import CheckpointError, bundled_names, load
from transformer.inference.generation import Candidate, GenerationStep
from transformer.inference.model import Model
from transformer.inference.request import Request
from transformer.inference.run import Batch, Run, Search
from transformer.inference.sampling import Sampling
from transformer.inference.stream import Stream
from transformer.model.config import PRESETS, ModelConfig
from transformer.model.trace import AttentionRecord, Site, Trace
from transformer.model.transformer import build_transformer
from transformer.text import Tokenizer

__all__ = [
    "PRESETS",
    "AttentionRecord",
    "Batch",
    "Candidate",
    "CheckpointError",
    "GenerationStep",
    "Model",
    "ModelConfig",
    "Request",
    "Run",
    "Sampling",
    "Search",
    "Site",
    "Stream",
    "Tokenizer",
    "Trace",
    "build_transformer",
    "bundled_names",
    "load",
]
