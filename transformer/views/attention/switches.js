// The switches above the attention picture: a field of the view each.

import { say } from "../../web/messages.js";
import { fieldsOf } from "../../web/link_text.js";
import { html, useState } from "../../web/preact.js";
import { isHeatmap } from "./numbers.js";

// Which kind of attention a picture is of, where it is of one only.
const KIND_OF = { alignment: "cross", rollout: "self", joint: "self" };
const DEEPER = ["mean", "rollout", "joint"]; // pictures that a beginner does not look for
const HINTS = {
  fixed: say("Colours span 0 to 1: heads can be compared"),
  own: say("Colours span 0 to the largest weight of this picture"),
};

export const isOffered = (picture, kind) => (KIND_OF[picture] ?? kind) === kind;

// One choice of few. words: {value: other words}; offers(value): whether it can be chosen.
const FieldSwitch = ({
  fields,
  field,
  look,
  words = {},
  offers = (value) => Boolean(value),
  ...how
}) => {
  const { title, options } = fieldsOf("attention")[field];
  const choice = ([value, text]) => {
    return html`<label title=${HINTS[value] ?? ""} hidden=${!offers(value)}>
      <input type="radio" name=${`attention-${field}`} value=${value} disabled=${how.disabled}
        checked=${fields[field] === value} onChange=${() => (fields[field] = value)} />
      <span>${words[value] ?? say(text)}</span>
    </label>`;
  };
  return html`<fieldset class=${`switch ${look}`} data-field=${field} hidden=${how.hidden}>
    <legend>${say(title)}</legend>${Object.entries(options).map(choice)}
  </fieldset>`;
};

// fields: of the view; at: the chosen head; motion: a button that stands among them.
export const Switches = ({ fields, at: { kind, layer }, motion }) => {
  const { picture, stage } = fields;
  const [isMore, showMore] = useState(false);
  const offers = (value) =>
    isOffered(value, kind) && (isMore || value === picture || !DEEPER.includes(value));
  const one = (field, look, pictures, more = {}) =>
    html`<${FieldSwitch} hidden=${!pictures.includes(picture)} ...${{ fields, field, look, ...more }} />`;
  const upTo = picture === "mean" || layer === 0 ? `${layer}` : say("0 to {layer}", { layer });
  const coloured = isMore && isHeatmap(picture) ? [picture] : [];
  const disabled = picture === "heatmap" && stage !== "weights";
  return html`<${FieldSwitch} field="picture" look="pictures" ...${{ fields, offers }} />
    ${one("stage", "stages", ["heatmap"])}
    ${motion}
    ${one("depth", "depths", DEEPER, { words: { layer: upTo } })}
    ${one("threshold", "thresholds", ["lines"])}
    ${one("over_heads", "over", ["alignment"])}
    ${one("by", "by", ["alignment"])}
    <button type="button" class="more-button" aria-expanded=${String(isMore)}
      onClick=${() => showMore(!isMore)}>${isMore ? say("Less") : say("More")}</button>
    ${one("scale", "scales", coloured, { disabled })}
    ${one("range", "ranges", coloured, { disabled })}`;
};
