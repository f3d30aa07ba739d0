"""Names of earlier versions. Files, links and requests with them are read, and none is written."""

# Each with today's name: of hook points and arrays, interventions, settings, pictures and their
# parameters, measures.
FORMER_NAMES: dict[str, str] = {
    "embedded": "embed",
    "positions": "pos_embed",
    "queries": "q",
    "keys": "k",
    "values": "v",
    "weights": "pattern",
    "heads": "z",
    "feed_forward": "mlp_out",
    "residual": "resid_post",
    "silence": "ablate",
    "taken": "forced_tokens",
    "surprise": "surprisal",
    "worked": "attention_math",
    "place": "position",
    **{f"moments.{one}": f"checkpoints.{one}" for one in ("step", "sentence", "layer", "head")},
}
# Sections of the page, by which links name what is open.
FORMER_SECTIONS = {
    "silence": "ablation",
    "surprise": "surprisal",
    "worked_row": "attention_math",
    "moments": "checkpoints",
}


def today(name: str) -> str:
    """The name that it has now."""
    return FORMER_NAMES.get(name, name)
