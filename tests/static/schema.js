// What Python writes into the page about its fields and views, for the modules that read it as they start.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { dataElements } from "../kit/dom.js";

const FOLDER = process.env.VECTORS;
if (!FOLDER) throw new Error("run these tests by pytest tests/static/test_javascript.py");
const { schema } = JSON.parse(readFileSync(join(FOLDER, "vectors.json"), "utf8"));
dataElements["view-schema"] = { textContent: JSON.stringify(schema) };
