// Opens the page from a folder of files on any web server.
const address = (name) => new URL(name, document.baseURI).href;
// How a file is read, whole; took: called with how many bytes have come.
globalThis.site = {
  address,
  async read(name, took = () => {}) {
    const answer = await fetch(address(name));
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    const parts = [];
    for await (const part of answer.body) {
      parts.push(part);
      took(part.length);
    }
    return new Blob(parts).arrayBuffer();
  },
};
const textOf = async (name) => {
  const stream = new Blob([await globalThis.site.read(name)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).text();
};
const files = [`words/${globalThis.spokenHere}.json.gz`, "site.json.gz"];
const [spoken, text] = await Promise.all(files.map(textOf));
globalThis.spoken = JSON.parse(spoken);
globalThis.site.text = text;
const glossary = {
  type: "application/json",
  id: "glossary",
  textContent: JSON.stringify(globalThis.spoken.glossary),
};
document.head.append(Object.assign(document.createElement("script"), glossary));
await import("start");
