// Functions of the page around the views, for the views. Its scripts (server/static) put them here as they start; a
// saved page has none of them.

export const shell = {
  // Show a state, texts by field; facts: of its run, where this visit has shown it.
  /** @type {(state: Record<string, string>, facts?: any) => Promise<void>} */
  apply: async () => {},
  // Continue the text in the box, or `text`. altered: the changes to the network.
  /** @type {(altered: Record<string, any>, text?: string) => void} */
  generate: () => {},
  // Open a tab by its name in links; gives its button.
  /** @type {(name: string) => HTMLElement | undefined} */
  openTab: () => undefined,
  // Set Gradio's controls, by their names in a link.
  /** @type {(changes: Record<string, any>) => Promise<void>} */
  setControls: async () => {},
};
