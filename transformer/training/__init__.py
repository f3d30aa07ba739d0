"""Train models by recipes: data, the loop, resumable checkpoints, evaluation, model cards."""
