// Starts `errata lsp` and connects it with VS Code.
"use strict";

const path = require("node:path");
const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** The command of the settings; one that is a path starts at the folder that is open. */
function command() {
  const [program, ...args] = workspace.getConfiguration("errata").get("command");
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const relative = folder && !path.isAbsolute(program) && /[\\/]/.test(program);
  return { command: relative ? path.join(folder, program) : program, args, options: { cwd: folder } };
}

/** Starts the server. Says how to install it where it does not start. */
async function start() {
  const options = {
    documentSelector: [
      { scheme: "file", language: "yaml" },
      { scheme: "file", language: "cxl" },
    ],
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{yaml,yml,cxl,toml}") },
  };
  client = new LanguageClient("errata", "Errata", command(), options);
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(`errata lsp did not start: ${error.message}. Install it with pip install 'errata[lsp]', or set errata.command.`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.dispose().catch(() => undefined);
}

async function activate(context) {
  const restart = async () => {
    await stop();
    await start();
  };
  context.subscriptions.push(commands.registerCommand("errata.restart", restart));
  context.subscriptions.push(workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("errata.command") && restart()));
  await start();
}

module.exports = { activate, deactivate: stop };
