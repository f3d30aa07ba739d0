// A file of the page's site, whole. took: called with how many bytes have come.
/** @type {(address: string, took?: (bytes: number) => void) => Promise<ArrayBuffer>} */
export const fetched = async (address, took = () => {}) => {
  const answer = await fetch(new URL(address, document.baseURI), { priority: "low" });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  const parts = [];
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (answer.body).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts).arrayBuffer();
    parts.push(value);
    took(value.length);
  }
};
