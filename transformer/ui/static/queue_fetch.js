// Gradio 6.31 asks its queue through window.fetch. Its page makes a client of its own, which can be given no headers,
// session or listener (Client.connect can, but only a program's), so that fetch is replaced for these two questions.

export const fetched = window.fetch.bind(window);
/** @typedef {(url: string, options: any) => Promise<Response>} Ask */
/** @type {(join: Ask, data: Ask) => void} join: begins something; data: the stream of what it says */
export const askQueueBy = (join, data) => {
  window.fetch = (resource, given) => {
    const url = resource instanceof Request ? resource.url : String(resource);
    if (url.includes("/queue/join")) return join(url, given);
    return url.includes("/queue/data") ? data(url, given) : fetched(resource, given);
  };
};
