// Interventions in one sentence each, as interventions/descriptions.py says them.

import { say, sayList, sayN } from "../web/messages.js";

/** @import { Intervention } from "./types.d.ts" */

/** @type {(numbers: number[]) => string} */
const listed = (numbers) => (numbers.length ? sayList(numbers.map(String)) : say("none"));
/** @type {(stack: string, layer: number) => string} */
const layerOf = (stack, layer) =>
  stack === "encoder" ? say("encoder layer {layer}", { layer }) : say("layer {layer}", { layer });
/** @type {(of: { stack: string, kind: string }) => string} */
export const attentionName = ({ stack, kind }) => {
  if (kind === "cross") return say("decoder cross-attention");
  return stack === "encoder" ? say("encoder self-attention") : say("decoder self-attention");
};

/** @type {{ [Type in Intervention["type"]]?: (change: Extract<Intervention, { type: Type }>) => string }} */
const WORDS = {
  ablate: ({ stack, layer, heads: switched, kind = "self", by = "zero", part = "z" }) => {
    if (part === "mlp_out")
      return stack === "encoder"
        ? say("encoder layer {layer}, feed-forward switched off", { layer })
        : say("layer {layer}, feed-forward switched off", { layer });
    const place =
      kind === "cross" ? say("cross-attention layer {layer}", { layer }) : layerOf(stack, layer);
    const heads = switched ?? [];
    const at = { layer: place, heads: listed(heads) };
    return by === "zero"
      ? sayN(
          "{layer}, head {heads} switched off",
          "{layer}, heads {heads} switched off",
          heads.length,
          at,
        )
      : sayN(
          "{layer}, head {heads} replaced by its mean",
          "{layer}, heads {heads} replaced by their mean",
          heads.length,
          at,
        );
  },
  mask: ({ stack, layer = null, kind = "self", without = [], allow = [], forbid = [] }) => {
    const attention = attentionName({ stack, kind });
    const where =
      layer === null ? attention : say("{attention}, layer {layer}", { attention, layer });
    const parts = without.map((/** @type {string} */ name) =>
      name === "causal" ? say("without the causal mask") : say("without the padding mask"),
    );
    if (allow.length) parts.push(sayN("{n} allowed", "{n} allowed", allow.length));
    if (forbid.length) parts.push(sayN("{n} forbidden", "{n} forbidden", forbid.length));
    return say("mask of {where}: {said}", {
      where,
      said: sayList(parts.length ? parts : [say("unchanged")]),
    });
  },
  break: ({ what }) => say(what.replaceAll("-", " ")),
  patch: ({ stack, layer, part = "resid_post", heads = null, positions }) => {
    const what =
      part === "resid_post"
        ? say("residual stream")
        : part === "mlp_out"
          ? say("feed-forward")
          : heads
            ? sayN("head {listed}", "heads {listed}", heads.length, { listed: listed(heads) })
            : say("all heads");
    const places = { listed: listed(positions) };
    const at = sayN("at place {listed}", "at places {listed}", positions.length, places);
    return say("{layer}, {what} {at}", { layer: layerOf(stack, layer), what, at });
  },
};
/** @type {<Change extends Intervention>(change: Change) => string} */
export const wordsOf = (change) => {
  const words = /** @type {((change: Intervention) => string) | undefined} */ (WORDS[change.type]);
  return words?.(change) ?? change.type;
};
