// Files that the page makes for its visitor.

/** @type {(blob: Blob, name: string) => void} */
export const saveFile = (blob, name) => {
  const link = Object.assign(document.createElement("a"), {
    href: URL.createObjectURL(blob),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
