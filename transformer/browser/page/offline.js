// The service worker of a folder of files: what a visitor has opened once opens again without a network. A file comes from
// the network where there is one, weights from what is kept: their addresses change with them.
// server/static_page.py writes the names of the files and their version.

const FILES = ["./" /*files*/];
const SCOPE = /** @type {any} */ (globalThis).registration.scope;
const KEPT = `${SCOPE} /*version*/`;
const WEIGHTS = `${SCOPE} models`;

/** @type {(work: () => Promise<any>) => (event: any) => void} */
const waiting = (work) => (event) => event.waitUntil(work());

const install = async () => {
  const cache = await caches.open(KEPT);
  await cache.addAll(FILES.map((name) => new Request(name, { cache: "no-cache" })));
  await /** @type {any} */ (globalThis).skipWaiting();
};
const activate = async () => {
  const names = (await caches.keys()).filter((name) => name.startsWith(`${SCOPE} `));
  await Promise.all(
    names.filter((name) => ![KEPT, WEIGHTS].includes(name)).map((name) => caches.delete(name)),
  );
  await /** @type {any} */ (globalThis).clients.claim();
};

/** @type {(request: Request) => Promise<Response>} */
const weights = async (request) => {
  const cache = await caches.open(WEIGHTS);
  const found = await cache.match(request);
  if (found) return found;
  const answer = await fetch(request);
  if (answer.ok) await cache.put(request, answer.clone());
  return answer;
};
/** @type {(request: Request) => Promise<Response>} */
const file = async (request) => {
  const cache = await caches.open(KEPT);
  const answer = await fetch(request).catch(() => null);
  if (!answer) return (await cache.match(request, { ignoreSearch: true })) ?? Response.error();
  if (answer.ok && answer.type === "basic") await cache.put(request, answer.clone());
  return answer;
};

globalThis.addEventListener("install", waiting(install));
globalThis.addEventListener("activate", waiting(activate));
globalThis.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(SCOPE)) return;
  const isOfModel = request.url.startsWith(`${SCOPE}models/`);
  event.respondWith(isOfModel ? weights(request) : file(request));
});
