// The layout of the journey's picture in px, and the bands that flow into the stream.

/**
 * @typedef {{ kind: string }} OfKind
 * @typedef {Pick<import("./types").JourneyAnswer, "heads" | "feed_forward">} Amounts
 * @typedef {import("./types").LensSegment} LensSegment
 */

const START = 25; // of the stream
const LEFT = 88; // of the first layer
const END = 24;
const GAP = 6;
const LOW_GAP = 2;
const TOP = 24;
const SOURCE = 34; // the source's stream, above
const KINDS = 20; // a line that names the kinds
const KIND_PX = 26; // of a column under which its kind cannot be read
const LOW_PX = 26; // rows of heads that are lower are closer together
const MAX_HEAD_PX = 56; // px of a head
const FORWARD = 20;
const ABOVE_STREAM = 50;
const THIN = 3;
const THICK = 17; // half of the stream
const LENS = 26; // below its middle
const WORDS = 44;
const MAX_BAND_PX = 13;
const MIN_SHARE = 0.06; // of the largest amount: less is not drawn
const MAX_BANDS = 16;
const WORD_PX = 46;
const LEAST_WORD_PX = 26;
const LANE = 16; // px next to a head of one layer alone
const ALONE = 72; // px of such a head at most

/**
 * type: how large letters are, 1 on a desk
 * @type {(of: { width: number, height: number, nLayers: number, nHeads: number, kinds: OfKind[], small: boolean, source: boolean, type?: number }) => import("./types").PictureGeometry}
 */
export const geometryOf = ({ width, height, nLayers, nHeads, kinds, small, source, type = 1 }) => {
  const several = kinds.length > 1;
  const [left, end, forward] = [type * LEFT, type * END, type * FORWARD];
  const below = forward + GAP + ABOVE_STREAM + LENS + type * WORDS;
  const pitch = (width - left - end) / nLayers;
  const wide = (small ? 0.7 * pitch : 0.8 * pitch) / kinds.length;
  const sizesBelow = (/** @type {number} */ top) => {
    const high = (height - top - below) / nHeads;
    const gap = high < LOW_PX ? LOW_GAP : GAP;
    const side = Math.max(4, Math.floor(Math.min(MAX_HEAD_PX, high - gap, wide)));
    return { top, high, gap, side };
  };
  const bare = sizesBelow(type * (TOP + (source ? SOURCE : 0)));
  const under = sizesBelow(bare.top + type * KINDS);
  // Where the kinds' names have no room, the heads have theirs.
  const named = several && (small ? under.side : wide) > type * KIND_PX;
  const { top, high, gap, side } = named ? under : bare;
  const cell = small
    ? { width: side, height: side }
    : { width: Math.max(3, wide - 1), height: Math.max(3, Math.min(MAX_HEAD_PX / 2, high - 1)) };
  const between = small ? gap : 1;
  const row = cell.height + between;
  const inner = kinds.length * (cell.width + between) - between;
  const feet = top + nHeads * row;
  const stream = feet + forward + ABOVE_STREAM;
  const place = (/** @type {string} */ kind) => kinds.findIndex((one) => one.kind === kind);
  /** @type {(layer: number, at?: number) => number} */
  const x = (layer, at = 0) => left + layer * pitch + at * (cell.width + between);
  const y = (/** @type {number} */ head) => top + head * row;
  const after = (/** @type {number} */ layer) => left + layer * pitch + (inner + pitch) / 2;
  /** @type {import("./types").FlowGeometry["box"]} */
  const box = (kind, layer, head) => ({ left: x(layer, place(kind)), top: y(head), ...cell });
  const bridges = !source
    ? ""
    : Array.from({ length: nLayers }, (_, layer) => {
        const middle = x(layer, place("cross")) + cell.width / 2;
        return `M${middle} ${type * (SOURCE - 6)}V${named ? top - type * KINDS : top - 2}`;
      }).join("");
  return {
    ...{ width, nHeads, type, left, top, pitch, cell, row, inner, named },
    ...{ stream, x, y, after, box, bridges },
    height: stream + LENS + type * WORDS,
    gutter: pitch - inner,
    lane: ({ layer }) => x(layer) + inner,
    lens: stream + LENS,
    start: { left: 0, width: left - 8, top: stream - 50 * type, height: 38 * type },
    source: { left, top: 2, width: width - left - end, height: type * 26 },
    feedForward: (layer) => ({ left: x(layer), top: feet + 2, width: inner, height: forward }),
    // Half of the stream's thickness along its way, [x, px]. norms: after the embedding and each layer.
    thickness: (norms) => {
      const half = halfOf(norms);
      const ways = Array.from(norms, (norm, at) => [at ? after(at - 1) : type * START, half(norm)]);
      return [...ways, [width, half(norms[norms.length - 1])]];
    },
  };
};
/** @type {(norms: ArrayLike<number>) => (norm: number) => number} */
const halfOf = (norms) => {
  const most = Math.max(...Array.from(norms));
  return (norm) => THIN + (THICK - THIN) * (norm / most);
};

/**
 * One layer alone: rows of its heads, the feed-forward below them, then the stream.
 * @type {(of: { width: number, layer: number, nHeads: number, kinds: OfKind[], across: number, type?: number }) => import("./types").FlowGeometry}
 */
export const layerGeometryOf = ({ width, layer, nHeads, kinds, across, type = 1 }) => {
  const side = Math.min(ALONE, Math.floor((width - LANE) / across) - LANE);
  const [column, row] = [side + LANE, side + GAP];
  const feet = row * Math.ceil((kinds.length * nHeads) / across);
  const stream = feet + type * FORWARD + ABOVE_STREAM;
  /** @type {import("./types").FlowGeometry["box"]} */
  const box = (kind, _, head) => {
    const place = kinds.findIndex((one) => one.kind === kind) * nHeads + head;
    const [left, top] = [column * (place % across), row * Math.floor(place / across)];
    return { left, top, width: side, height: side };
  };
  return {
    ...{ width, nHeads, stream, box, layer },
    bridges: "",
    gutter: LANE,
    height: stream + THICK,
    lane: ({ left }) => left + side,
    feedForward: () => ({ left: 0, top: feet + 2, width: side, height: type * FORWARD }),
    thickness: (norms) => {
      const half = halfOf(norms);
      return [
        [0, half(norms[layer])],
        [width, half(norms[layer + 1])],
      ];
    },
  };
};

// What each head and feed-forward adds to the logit of the word: {amount, kind, layer, head}, no kind and head of a
// feed-forward; none if unknown.
/** @type {(answer: Amounts, nHeads: number) => import("./types").Amount[]} */
export const partsOf = ({ heads, feed_forward: forward }, nHeads) => [
  ...Object.entries(heads ?? {}).flatMap(([kind, amounts]) =>
    Array.from(amounts, (amount, place) => ({
      ...{ amount, kind, layer: Math.floor(place / nHeads), head: place % nHeads },
    })),
  ),
  ...Array.from(forward ?? [], (amount, layer) => ({ amount, layer })),
];
// A head's contribution to the logit of the word; 0 if unknown.
/** @type {(answer: Amounts, head: {kind: string, layer: number, head: number}, nHeads: number) => number} */
export const amountOf = ({ heads }, { kind, layer, head }, nHeads) =>
  heads?.[kind]?.[layer * nHeads + head] ?? 0;

/**
 * The bands that are drawn, {path, width, amount, strength, lane}: from a head, or a feed-forward, into the
 * lane next to its layer, and down into the stream. The upper ones run outside, so that none cross.
 * @type {(at: import("./types").FlowGeometry, answer: Amounts) => import("./types").Band[]}
 */
export const bandsOf = (at, answer) => {
  const all = partsOf(answer, at.nHeads).map((part) => {
    const { kind, layer, head } = part;
    const { left, top, width, height } =
      kind && head !== undefined ? at.box(kind, layer, head) : at.feedForward(layer);
    return { ...part, x: left + width, y: top + height / 2, lane: at.lane({ layer, left }) };
  });
  const most = Math.max(...all.map(({ amount }) => Math.abs(amount)));
  const drawn = all
    .filter(({ amount }) => Math.abs(amount) >= MIN_SHARE * most)
    .sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount))
    .slice(0, MAX_BANDS)
    .filter(({ layer }) => (at.layer ?? layer) === layer);
  if (!drawn.length || at.gutter < 8) return [];
  const inLane = (/** @type {number} */ lane) => drawn.filter((part) => part.lane === lane);
  const sums = drawn.map(({ lane }) =>
    inLane(lane).reduce((sum, { amount }) => sum + Math.abs(amount), 0),
  );
  const scale = Math.min(MAX_BAND_PX / most, (0.8 * at.gutter) / Math.max(...sums));
  const lanes = new Map();
  return drawn
    .sort((a, b) => b.y - a.y)
    .map(({ x, y, lane, amount }) => {
      const width = Math.max(1, Math.abs(amount) * scale);
      const used = lanes.get(lane) ?? 2;
      lanes.set(lane, used + width + 1);
      const middle = lane + used + width / 2;
      const bend = Math.min(18, at.stream - y - 20);
      const path = `M${x} ${y}C${middle} ${y} ${middle} ${y} ${middle} ${y + bend}V${at.stream - 24}q0 ${24} 16 24`;
      const strength = 0.25 + (0.65 * Math.abs(amount)) / most;
      return { path, width, amount, strength, lane: middle };
    });
};

// The lens's word after each layer; with little room, equal neighbours are merged. pitch: px of a layer.
/** @type {(lens: {label: string, probability: number}[], pitch: number) => LensSegment[]} */
export const segmentsOf = (lens, pitch) => {
  /** @type {Omit<LensSegment, "isFinal" | "isSmall">[]} */
  const segments = [];
  lens.slice(1).forEach(({ label, probability }, layer) => {
    const before = segments[segments.length - 1];
    if (pitch < WORD_PX && before?.label === label)
      Object.assign(before, { probability, last: layer });
    else segments.push({ label, probability, first: layer, last: layer });
  });
  const wide = (/** @type {{ first: number, last: number }} */ { first, last }) =>
    (last - first + 1) * pitch;
  const final = segments.at(-1);
  return segments
    .filter((one) => one === final || wide(one) >= LEAST_WORD_PX)
    .map((one) => ({ ...one, isFinal: one === final, isSmall: wide(one) < WORD_PX }));
};
