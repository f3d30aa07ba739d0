// The small faults of a script, for tools/mutants.py: reads the code from stdin, writes them as JSON. Each is {line,
// operator, occurrence, start, end, text}: `text` replaces what is between start and end.
import { readFileSync } from "node:fs";
import process from "node:process";
import { parse } from "espree";

const OTHER = new Map(
  ["+ -", "* /", "% *", "< <=", "> >=", "=== !==", "&& ||", "?? ||"].flatMap((pair) => {
    const [one, other] = pair.split(" ");
    return [
      [other, one],
      [one, other],
    ];
  }),
);
OTHER.set("*", "/").set("||", "&&");

const code = readFileSync(0, "utf8");
/** @type {(node: any) => string} */
const textOf = ({ start, end }) => code.slice(start, end);
/** @type {(node: any) => boolean} */
const isText = ({ type, value }) => type === "TemplateLiteral" || typeof value === "string";

// What replaces which node, and by which operator; null where nothing does.
/** @type {(node: any) => [string, {start: number, end: number}, string] | null} */
const faultOf = (node) => {
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression": {
      const { left, right, operator } = node;
      const other = OTHER.get(operator);
      if (!other || isText(left) || isText(right)) return null;
      const start = left.end + code.slice(left.end).indexOf(operator);
      return ["ReplaceBinaryOperator", { start, end: start + operator.length }, other];
    }
    case "Literal":
      if (typeof node.value === "number") return ["NumberReplacer", node, String(node.value + 1)];
      return typeof node.value === "boolean" ? ["ReplaceBoolean", node, String(!node.value)] : null;
    case "IfStatement":
    case "ConditionalExpression":
      return ["AddNot", node.test, `!(${textOf(node.test)})`];
    case "UnaryExpression":
      return node.operator === "!" ? ["DeleteNot", node, textOf(node.argument)] : null;
    case "ForOfStatement":
      return ["ZeroIterationForLoop", node.right, "[]"];
    case "ContinueStatement":
      return ["ReplaceContinueWithBreak", node, "break;"];
    case "ExpressionStatement":
      return node.expression.type === "CallExpression" ? ["DeleteCall", node, ";"] : null;
    default:
      return null;
  }
};

/** @type {object[]} */
const faults = [];
/** @type {(node: any) => void} */
const visit = (node) => {
  if (Array.isArray(node)) node.forEach(visit);
  if (typeof node?.type !== "string") return;
  const fault = faultOf(node);
  if (fault) {
    const [operator, { start, end }, text] = fault;
    const line = code.slice(0, start).split("\n").length;
    faults.push({ line, operator, occurrence: faults.length, start, end, text });
  }
  Object.values(node).forEach(visit);
};
visit(parse(code, { ecmaVersion: "latest", sourceType: "module" }));
process.stdout.write(JSON.stringify(faults));
