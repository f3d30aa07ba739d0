// The questions of the page that the network in the browser answers.

export const QUESTIONS = [
  ...["journey", "without_head", "continuation", "deciding", "telling", "readers"],
  ...["word_effects", "without_words", "feed_forward", "neuron_passages"],
  ...["heatmap", "atlas", "columns", "flow", "attention_math"],
  ...["metrics", "metric_map", "passages"],
  ...[
    "mask",
    "padded",
    "removal",
    "used_mask",
    "positions",
    "inputs",
    "nearest_tokens",
    "shift",
    "rotary",
  ],
  ...[
    "surprisal",
    "lens",
    "masked",
    "labels",
    "choices",
    "beams",
    "broken",
    "broken_text",
    "intact_text",
  ],
  ...["importance", "contribution", "other_text", "patching", "architecture", "equations"],
  ...["compare", "outcomes", "difference"],
];
