// The questions of the page that the network in the browser answers.

export const QUESTIONS = [
  ...["journey", "without_head", "continuation", "telling", "readers"],
  ...["word_effects", "without_words", "feed_forward"],
  ...["heatmap", "atlas", "columns", "flow", "attention_math"],
  ...["mask", "padded", "removal", "used_mask", "positions", "inputs", "nearest_tokens"],
  ...["surprisal", "lens", "masked", "labels", "choices", "broken", "broken_text", "intact_text"],
  ...["importance", "contribution", "other_text", "patching", "architecture"],
  ...["compare", "outcomes", "difference"],
];
