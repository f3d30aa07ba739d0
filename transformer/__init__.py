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

from transformer.checkpoint import CheckpointError, bundled_names, load
from transformer.inference.archive import from_json, read_npz
from transformer.inference.candidates import Candidate
from transformer.inference.generation import GenerationStep
from transformer.inference.model import Model
from transformer.inference.pictures import Pictures, draw_with
from transformer.inference.request import Request
from transformer.inference.run import Batch, Run, Search
from transformer.inference.sampling import Sampling
from transformer.inference.stream import Stream
from transformer.model.config import PRESETS, ModelConfig
from transformer.model.interventions import BREAKS, Break, EditMask, Patch, Silence
from transformer.model.trace import AttentionRecord, Site, Trace
from transformer.model.transformer import build_transformer
from transformer.text import Tokenizer

__all__ = [
    "BREAKS",
    "PRESETS",
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
    "Request",
    "Run",
    "Sampling",
    "Search",
    "Silence",
    "Site",
    "Stream",
    "Tokenizer",
    "Trace",
    "build_transformer",
    "bundled_names",
    "from_json",
    "load",
    "read_npz",
]


def _pictures() -> Pictures:
    """Plotly takes a while to import: not before the first picture."""
    from transformer.figures import notebook

    return notebook


draw_with(_pictures)
