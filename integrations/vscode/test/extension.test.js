// The extension with its client, and the real `errata lsp` behind it, in a stand-in for the editor.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const Module = require("node:module");
const os = require("node:os");
const path = require("node:path");
const { test, after, before } = require("node:test");
const { editor, document, Position } = require("./vscode.js");

const PIPELINE = `pipeline:
  name: shop
nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: orders.csv
      schema: [{name: id, type: int}, {name: amount, type: float}]
  - type: transform
    name: priced
    input: orders
    config:
      cxl: |
        emit total = amuont * 2
  - type: output
    name: out
    input: priced
    config: {name: out, type: csv, path: out.csv}
`;
const COMMAND = [...(process.env.ERRATA_COMMAND || "errata").split(" "), "lsp"];
const PATIENCE = 60_000;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "errata-vscode-"));
const file = path.join(folder, "pipeline.yaml");
const settings = { "errata.command": COMMAND };
const made = editor(folder, settings);
const context = { subscriptions: [] };
let extension;

/** Waits until a function gives something. */
async function until(find) {
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    const found = find();
    if (found) return found;
    await new Promise((go) => setTimeout(go, 50));
  }
  throw new Error(`nothing came within ${PATIENCE / 1000} s; the editor showed: ${made.errors.join("; ") || "no error"}`);
}

before(async () => {
  fs.writeFileSync(file, PIPELINE);
  fs.writeFileSync(path.join(folder, "orders.csv"), "id,amount\n1,2.5\n");
  const load = Module._load;
  Module._load = (name, ...words) => (name === "vscode" ? made.api : load(name, ...words));
  extension = require("../extension.js");
  await extension.activate(context);
});

after(async () => {
  await extension.deactivate();
  fs.rmSync(folder, { recursive: true });
});

test("the server starts", () => {
  assert.deepStrictEqual(made.errors, []);
  assert.ok(made.commands.has("errata.restart"));
});

test("an open pipeline has the messages of the checker, with their places", async () => {
  const opened = document(file, "yaml", PIPELINE);
  made.documents.push(opened);
  made.events.opened.fire(opened);
  const [first] = await until(() => [...made.diagnostics.values()].find((found) => found.length));
  assert.match(first.message, /amuont/);
  assert.strictEqual(first.severity, made.api.DiagnosticSeverity.Error);
  assert.deepStrictEqual([first.range.start.line, first.range.start.character], [15, 21]);
});

test("hover, completion and definition ask the server", async () => {
  const token = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) };
  const hover = await until(() => made.providers.get("registerHoverProvider"));
  const found = await hover.provideHover(made.documents[0], new Position(11, 12), token);
  assert.ok(found === null || found === undefined || found.contents);
  const completion = made.providers.get("registerCompletionItemProvider");
  const items = await completion.provideCompletionItems(made.documents[0], new Position(15, 23), token, { triggerKind: 0 });
  assert.ok((items.items ?? items).some((item) => (item.label.label ?? item.label) === "amount"));
  const definition = made.providers.get("registerDefinitionProvider");
  const place = [await definition.provideDefinition(made.documents[0], new Position(12, 13), token)].flat()[0];
  assert.strictEqual((place.range ?? place.targetRange).start.line, 4);
});

test("a command that is not there is explained", async () => {
  settings["errata.command"] = ["errata-that-is-not-there", "lsp"];
  await made.commands.get("errata.restart")();
  assert.match(made.errors.join(), /errata lsp did not start/);
});
