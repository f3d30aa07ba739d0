/** @type {(address: string) => Promise<Response>} */
const answerOf = async (address) => {
  const answer = await fetch(new URL(address, document.baseURI), { priority: "low" });
  if (answer.ok) return answer;
  throw new Error(`${address}: ${answer.status}`);
};
// A file of the page's site, whole.
/** @type {(address: string) => Promise<ArrayBuffer>} */
export const fetched = async (address) => (await answerOf(address)).arrayBuffer();
// A file in parts, as they come. take: takes one.
/** @type {(address: string, take: (part: Uint8Array<ArrayBuffer>) => Promise<void>) => Promise<void>} */
export const fetchedParts = async (address, take) => {
  const { body } = await answerOf(address);
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (body).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    await take(value);
  }
};
