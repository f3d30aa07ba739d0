// The service worker of a folder of files: what a visitor has opened once opens again without a network. A file comes from
// the network where there is one, weights from what is kept: their addresses change with them.
// server/page/static_page.py writes the names of the files and their version.

const FILES = ["./" /*files*/];
const worker = /** @type {import("../types.d.ts").ServiceWorkerScope} */ (
  /** @type {unknown} */ (globalThis)
);
const SCOPE = worker.registration.scope;
const FILES_CACHE = `${SCOPE} /*version*/`;
const WEIGHTS_CACHE = `${SCOPE} models`;

const install = async () => {
  const cache = await caches.open(FILES_CACHE);
  await cache.addAll(FILES.map((name) => new Request(name, { cache: "no-cache" })));
  await worker.skipWaiting();
};
const activate = async () => {
  const names = (await caches.keys()).filter((name) => name.startsWith(`${SCOPE} `));
  await Promise.all(
    names
      .filter((name) => ![FILES_CACHE, WEIGHTS_CACHE].includes(name))
      .map((name) => caches.delete(name)),
  );
  await worker.clients.claim();
};

/** @type {(request: Request) => Promise<Response>} */
const weights = async (request) => {
  const cache = await caches.open(WEIGHTS_CACHE);
  const cached = () => cache.match(request);
  const answer = (await cached()) ?? (await cache.add(request).then(cached, () => null));
  return answer ?? fetch(request); // there is no room for it
};
/** @type {(request: Request) => Promise<Response>} */
const file = async (request) => {
  const cache = await caches.open(FILES_CACHE);
  const answer = await fetch(request).catch(() => null);
  if (!answer) return (await cache.match(request, { ignoreSearch: true })) ?? Response.error();
  if (answer.ok && answer.type === "basic") await cache.put(request, answer.clone());
  return answer;
};

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(SCOPE)) return;
  const isOfModel = request.url.startsWith(`${SCOPE}models/`);
  event.respondWith(isOfModel ? weights(request) : file(request));
});
