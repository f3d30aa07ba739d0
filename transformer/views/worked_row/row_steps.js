// The steps from a query and one key to its weight and the output, in words and in numbers.

import { say } from "../../ui/static/messages.js";
import { factorText, numberText, productsText, smallText } from "./row_arithmetic.js";

// row: what the network read; sums: every step worked out. Returns [[words, reckoning], ...].
export const stepsOf = (row, sums, key) => {
  const size = row.q.length;
  const ofKey = row.keys.subarray(key * size, (key + 1) * size);
  const [dot, score] = [numberText(sums.dots[key]), numberText(sums.scores[key])];
  const order = sums.weights
    .map((_, place) => place)
    .sort((a, b) => sums.weights[b] - sums.weights[a]);
  const mix = order.filter((place) => sums.weights[place] > 0);
  const allowed = row.allowed[key];
  const exponential = `e^(${score} − ${factorText(sums.largest)}) = ${smallText(sums.exps[key])}`;
  const products = productsText(
    mix.map((place) => sums.weights[place]),
    mix.map((place) => row.values[place * size]),
    3,
  );
  return [
    [
      say("Agreement, the sum of {size} products: q·k =", { size }),
      `${productsText(row.q, ofKey, 2)} = ${dot}`,
    ],
    [
      row.score_size === size
        ? say("Divided by the root of the head's size:")
        : say("Divided by the root of d_model, as this historical network has it:"),
      `${dot} / √${row.score_size} = ${score}`,
    ],
    [
      say("Mask:"),
      allowed
        ? say("{score} + 0 = {score}, this key may be read", { score })
        : say("the mask hides this key: score −∞, e to the −∞ = 0"),
    ],
    [say("Exponential, after subtracting the largest score:"), allowed ? exponential : "0"],
    [
      say("Weight, its share of the sum:"),
      `${smallText(sums.exps[key])} / ${numberText(sums.total)} = ${smallText(sums.weights[key])}`,
    ],
    [
      say(
        "Output, dimension 0: the weighted sum of the values' dimension 0 ({count} keys, largest " +
          "weight first):",
        { count: mix.length },
      ),
      `${products} = ${numberText(sums.output[0])}`,
    ],
  ];
};
