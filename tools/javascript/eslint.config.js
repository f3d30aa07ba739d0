// What the page's scripts are held to. Layout is prettier's.
import js from "@eslint/js";
import globals from "globals";

// What people read is said: say("…") of transformer/web/messages.js, so that it can be translated.
const SAID = ":not(CallExpression[callee.name=/^(say|sayN|sayWith)$/] *)";
const WORD = "/[a-z]{2}/";
const SENTENCE = "/^ ?[A-Z][a-z]+ [a-z]|[a-z]{2,},? [a-z]{2,} [a-z]{2,}|[a-z]{2} [a-z]+[.:]$/";
const READ = "/^(textContent|title|placeholder|ariaLabel)$/";
const LABEL = "/^(aria-label|aria-roledescription|title|placeholder)$/";
const message = 'Write say("…") with placeholders in braces: see transformer/web/messages.js.';
const unsaid = [
  `Literal[value=${SENTENCE}]${SAID}`,
  `TemplateElement[value.raw=${SENTENCE}]${SAID}`,
  `AssignmentExpression[left.property.name=${READ}] > Literal[value=${WORD}]`,
  `AssignmentExpression[left.property.name=${READ}] > TemplateLiteral > TemplateElement[value.raw=${WORD}]`,
  `CallExpression[callee.name="el"] > Literal:nth-child(3)[value=${WORD}]`,
  `CallExpression[callee.name="el"] > TemplateLiteral:nth-child(3) > TemplateElement[value.raw=${WORD}]`,
  `CallExpression[callee.property.name="setAttribute"][arguments.0.value=${LABEL}] > Literal:nth-child(2)[value=${WORD}]`,
].map((selector) => ({ selector, message }));

// A component is a function of state: Preact draws the page, and hooks listen. Files with exceptions:
const BY_HAND = {
  "browser/page/folder.js": "opens the page, before any component",
  "browser/page/one_file.js": "reads its parts, before any component",
  "browser/page/opened.js": "puts them into the page's head",
  "browser/page/offline.js": "a service worker",
  "browser/page/layout.js": "tells scripts of a mounted part, as Gradio's page does",
  "browser/page/start.js": "mounts the page",
  "web/part.js": "the hook that hears the whole document",
  "web/declared.js": "reads what Python wrote into the page's head",
  "web/plots.js": "Plotly's box and script; saves a file",
  "web/labels.js": "a canvas that measures text",
  "web/head_grid.js": "a canvas; moves the focus",
  "web/arcs.js": "measures where tokens are",
  "web/preact.js": "what a browser that translates the page did to it",
  "server/static/main.js": "mounts what is above the page",
  "server/static/first_look.js": "mounts the first parts and moves them into Gradio's page",
  "server/static/focus.js": "where the focus can go on the whole page",
  "server/static/guide.js": "presses Train, to show a step's answer",
  "server/static/gradio.js": "Gradio's own boxes, tabs and buttons",
  "server/static/phone.js": "mounts the page of a phone",
  "server/static/terms.js": "marks words in the texts of others",
  "browser/worker.js": "hears that a call is cancelled",
  "views/export/exports.js": "saves pictures of every part",
  "views/export/static/saved.js": "mounts the saved page",
};
// What the page shows is state: in store.js, in a `reactive` of its subject, or in a component. Files with variables of
// their own:
const VARIABLES = {
  "browser/page/layout.js": "the events and scripts of the page that it draws",
  "server/static/gradio.js":
    "what waits to be set in Gradio's controls; a visit leads down to the tabs once",
  "server/static/link.js": "the history's entry; what takes the last problem back",
  "views/export/svg.js": "a canvas, made once",
  "web/ask.js": "who answers in place of a server",
  "web/labels.js": "a canvas, made once",
  "web/part.js": "what takes the last problem back",
  "web/plots.js": "Plotly, loaded once, and its tools",
  "web/pointer.js": "where the pointer is; what lets go of the pressed control",
};
const UNDECLARED =
  /^(querySelector(All)?|getElementBy\w+|createElement|replaceChildren|replaceWith|append(Child)?|insertBefore|innerHTML|addEventListener|dispatchEvent|setAttribute)$/;

const byHand = {
  selector: `MemberExpression[property.name=${UNDECLARED}]`,
  message: "Say it as state and a component; see BY_HAND in eslint.config.js.",
};
const variable = {
  selector:
    'Program > VariableDeclaration[kind="let"], ExportNamedDeclaration > VariableDeclaration[kind="let"]',
  message: "Hold it in store.js or in a component; see VARIABLES in eslint.config.js.",
};

export default [
  {
    ignores: ["transformer/**/vendor/", ".venv*/", "build/"],
  },
  js.configs.recommended,
  {
    files: ["transformer/**/*.js"],
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: "error",
      "no-shadow": ["error", { builtinGlobals: false, hoist: "functions" }],
      "no-var": "error",
      "prefer-const": "error",
      "no-restricted-globals": ["error", "event", "name", "status", "length", "parent"],
      "max-lines": ["error", { max: 300 }],
      "no-restricted-syntax": ["error", ...unsaid, byHand, variable],
    },
  },
  ...Object.keys({ ...BY_HAND, ...VARIABLES }).map((name) => ({
    files: [`transformer/${name}`],
    rules: {
      "no-restricted-syntax": [
        "error",
        ...unsaid,
        ...(name in BY_HAND ? [] : [byHand]),
        ...(name in VARIABLES ? [] : [variable]),
      ],
    },
  })),
  {
    files: ["transformer/views/export/static/notebook.js"], // English, as all that Python shows
    rules: { "no-restricted-syntax": "off" },
  },
  {
    files: ["tests/{static,static_page,browser_engine}/*.js"],
    languageOptions: { globals: globals.node },
  },
  {
    files: ["tests/kit/page_modules.js"],
    languageOptions: { globals: globals.browser, sourceType: "script" },
  },
];
