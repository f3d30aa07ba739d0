// The button that copies the link to what is shown; and the opening of a link, which needs the server.
const viz = window.viz;
const find = (selector) => element.querySelector(selector);
const [button, address, says] = [".copy-link", ".share-address", ".share-says"].map(find);
const SAID_MS = 6000;
let timer = null;

const say = (text, passes = false) => {
  says.textContent = text;
  clearTimeout(timer);
  if (passes) timer = setTimeout(() => (says.textContent = ""), SAID_MS);
};

// In a Space's own page the link is to that page.
const linkTo = (query) => {
  const { origin, pathname } = window.location;
  const page = viz.link.isInHub() && props.space ? `https://huggingface.co/spaces/${props.space}` : origin + pathname;
  return query ? `${page}#${query}` : page;
};

button.addEventListener("click", async () => {
  const query = await viz.link.query();
  address.hidden = true;
  if (query === null) return say(viz.link.tooLong());
  address.value = linkTo(query);
  try {
    await navigator.clipboard.writeText(address.value);
    return say("Copied: who opens it sees the same.", true);
  } catch { // the browser does not let the page write there
    address.hidden = false;
    address.focus();
    address.select();
    return say("Copy it from here: Ctrl+C, or ⌘C.");
  }
});

const opened = () => props.value?.view && viz.link.opened(props.value);
watch("value", opened);
if (viz.link.opening && !props.value) {
  props.value = { query: viz.link.given, kept: viz.link.kept };
  trigger("submit");
}
