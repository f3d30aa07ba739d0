"""Small Transformers written from scratch, with everything that happens inside them kept.

For example:

    import transformer

    model = transformer.load("stories")
    run = model.generate("Once upon a time", max_new_tokens=40, temperature=0.8, top_k=40, seed=0)
    run.text, run.tokens, run.steps[3].candidates
    run.trace.weights("decoder", "self")      # (L, B, H, Tq, Tk), rows sum to 1
    run.attention("decoder.2.self", 3)        # a Plotly figure; in a notebook a run shows itself
    run.to_json(), run.to_npz("run.npz"), run.to_html("run.html")
"""

from transformer.analysis.logit_lens import with_lens
from transformer.checkpoint import CheckpointError, bundled_names, save
from transformer.command_line import __version__ as __version__
from transformer.inference.model import Model, from_transformers, load
from transformer.inference.stream import Stream
from transformer.interventions.breaks import BREAKS
from transformer.interventions.descriptions import Ablate, Add, Break, EditMask, Patch
from transformer.model.config import PRESETS, ModelConfig
from transformer.model.hooks import Point
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord, Trace
from transformer.model.transformer import build_transformer
from transformer.runs.batch import Batch, read_batch
from transformer.runs.external_attention import from_attention
from transformer.runs.request import Request, Sampling
from transformer.runs.run import Run, from_json, read_npz
from transformer.runs.steps import Candidate, GenerationStep, Search
from transformer.tokenizer import Tokenizer

__all__ = [
    "BREAKS",
    "PRESETS",
    "Ablate",
    "Add",
    "AttentionRecord",
    "Batch",
    "Break",
    "Candidate",
    "CheckpointError",
    "EditMask",
    "GenerationStep",
    "Model",
    "ModelConfig",
    "Patch",
    "Point",
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
    "from_attention",
    "from_json",
    "from_transformers",
    "load",
    "read_batch",
    "read_npz",
    "save",
    "with_lens",
]  # fmt: skip
