// A stand-in for the module `vscode` of the editor: what the client needs of it, and events that a test fires.
"use strict";

const path = require("node:path");
const { pathToFileURL, fileURLToPath } = require("node:url");

class Disposable {
  constructor(dispose) {
    this.dispose = dispose || (() => undefined);
  }
}

class Emitter {
  constructor() {
    this.listeners = new Set();
    this.event = (listener, self, disposables) => {
      const bound = self ? listener.bind(self) : listener;
      this.listeners.add(bound);
      const made = new Disposable(() => this.listeners.delete(bound));
      disposables?.push(made);
      return made;
    };
    this.fire = (value) => [...this.listeners].map((listener) => listener(value));
    this.dispose = () => this.listeners.clear();
  }
}

class Uri {
  constructor(href) {
    this.href = href;
    this.scheme = href.split(":")[0];
    this.path = decodeURIComponent(new URL(href).pathname);
    this.fsPath = this.scheme === "file" ? fileURLToPath(href) : this.path;
  }
  static parse(text) {
    return new Uri(text);
  }
  static file(name) {
    return new Uri(pathToFileURL(path.resolve(name)).href);
  }
  toString() {
    return this.href;
  }
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(...ends) {
    const [start, end] = ends.length === 4 ? [new Position(ends[0], ends[1]), new Position(ends[2], ends[3])] : ends;
    Object.assign(this, { start, end });
  }
}

/** A class of the editor whose objects hold what they are given. */
function plain(name, ...fields) {
  return {
    [name]: class {
      constructor(...values) {
        fields.forEach((field, at) => (this[field] = values[at]));
      }
    },
  }[name];
}

/** An event that never comes, a function that gives something to dispose, an enum: whatever a test does not need. */
const nothing = () => new Disposable();
const anyEnum = new Proxy({}, { get: (_target, name) => (typeof name === "string" ? name : undefined) });

/** An object that has the given members; members whose names begin with `on`, `register` or `create` are there too. */
function open(members) {
  return new Proxy(members, {
    get: (target, name) => (name in target ? target[name] : typeof name === "string" && /^(on|register|create)/.test(name) ? nothing : undefined),
  });
}

/** Makes the editor with one open folder. */
function editor(folder, settings) {
  const events = Object.fromEntries(["opened", "changed", "closed", "saved", "configured"].map((name) => [name, new Emitter()]));
  const providers = new Map();
  const diagnostics = new Map();
  const errors = [];
  const commands = new Map();
  const channel = open({ name: "Errata", append: nothing, appendLine: nothing, replace: nothing, clear: nothing, show: nothing, hide: nothing, dispose: nothing });
  const documents = [];
  const root = { uri: Uri.file(folder), name: path.basename(folder), index: 0 };

  /** Remembers providers by their kind. */
  const languages = new Proxy(
    {
      match: (selector, document) => (selector.language === undefined || selector.language === document.languageId ? 10 : 0),
      createDiagnosticCollection: () => ({
        set: (uri, found) => diagnostics.set(uri.toString(), found),
        delete: (uri) => diagnostics.delete(uri.toString()),
        clear: () => diagnostics.clear(),
        dispose: () => diagnostics.clear(),
      }),
    },
    {
      get: (target, name) =>
        name in target
          ? target[name]
          : (...given) => {
              providers.set(name, given.find((one) => one && typeof one === "object" && Object.keys(one).some((key) => key.startsWith("provide"))));
              return new Disposable(() => providers.delete(name));
            },
    },
  );

  const api = {
    version: "1.82.0", Disposable, EventEmitter: Emitter, Uri, Position, Range,
    CancellationTokenSource: class { constructor() { this.token = { isCancellationRequested: false, onCancellationRequested: nothing }; } cancel() {} dispose() {} },
    CancellationError: class extends Error {},
    RelativePattern: plain("RelativePattern", "base", "pattern"),
    Diagnostic: plain("Diagnostic", "range", "message", "severity"), DiagnosticRelatedInformation: plain("DiagnosticRelatedInformation", "location", "message"),
    Location: plain("Location", "uri", "range"), Hover: plain("Hover", "contents", "range"), CompletionItem: plain("CompletionItem", "label", "kind"),
    CompletionList: plain("CompletionList", "items", "isIncomplete"), CodeAction: plain("CodeAction", "title", "kind"), CodeLens: plain("CodeLens", "range"),
    DocumentLink: plain("DocumentLink", "range"), InlayHint: plain("InlayHint", "position", "label"), SymbolInformation: plain("SymbolInformation", "name"),
    CallHierarchyItem: plain("CallHierarchyItem", "kind"), TypeHierarchyItem: plain("TypeHierarchyItem", "kind"), DocumentSymbol: plain("DocumentSymbol", "name"),
    SemanticTokens: plain("SemanticTokens", "data"), TextEdit: plain("TextEdit", "range", "newText"), SnippetString: plain("SnippetString", "value"),
    MarkdownString: class { constructor(value) { this.value = value; } appendMarkdown(text) { this.value = (this.value || "") + text; return this; } },
    CodeActionKind: new Proxy(class { constructor(value) { this.value = value; } }, { get: (target, name) => (name in target ? target[name] : typeof name === "string" ? { value: name, append: () => ({}) } : undefined) }),
    DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 }, DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
    ...Object.fromEntries(["CompletionItemKind", "CompletionItemTag", "CompletionTriggerKind", "SymbolKind", "SymbolTag", "ProgressLocation", "StatusBarAlignment", "ConfigurationTarget",
      "DocumentHighlightKind", "FoldingRangeKind", "SignatureHelpTriggerKind", "TextDocumentSaveReason", "CodeActionTriggerKind", "InlayHintKind", "InlineCompletionTriggerKind",
      "TextDocumentChangeReason", "FileType", "LogLevel", "ViewColumn"].map((name) => [name, anyEnum])),
    env: open({ language: "en", appName: "test", clipboard: {} }),
    extensions: { getExtension: () => undefined, all: [] },
    commands: { registerCommand: (name, work) => (commands.set(name, work), new Disposable()), executeCommand: (name, ...words) => commands.get(name)?.(...words) },
    window: open({
      visibleTextEditors: [], tabGroups: open({ all: [] }), activeTextEditor: undefined, createOutputChannel: () => channel,
      showErrorMessage: async (text) => void errors.push(text), showWarningMessage: async () => undefined, showInformationMessage: async () => undefined,
      withProgress: (_options, work) => work({ report: nothing }, { onCancellationRequested: nothing }),
    }),
    languages,
    workspace: open({
      workspaceFolders: [root], textDocuments: documents, notebookDocuments: [], name: root.name, isTrusted: true, fs: {},
      getWorkspaceFolder: () => root, asRelativePath: (uri) => path.relative(folder, uri.fsPath ?? uri),
      getConfiguration: (section) => ({
        get: (key, other) => settings[section ? `${section}.${key}` : key] ?? other, has: () => false, inspect: () => undefined,
      }),
      createFileSystemWatcher: () => ({ onDidCreate: nothing, onDidChange: nothing, onDidDelete: nothing, dispose: nothing }),
      onDidOpenTextDocument: events.opened.event, onDidChangeTextDocument: events.changed.event, onDidCloseTextDocument: events.closed.event,
      onDidSaveTextDocument: events.saved.event, onDidChangeConfiguration: events.configured.event,
    }),
  };
  return { api, events, providers, diagnostics, errors, commands, documents };
}

/** A text document as the editor has it. */
function document(file, languageId, text) {
  const uri = Uri.file(file);
  return { uri, fileName: file, languageId, version: 1, isClosed: false, isDirty: false, isUntitled: false, getText: () => text, lineCount: text.split("\n").length, save: async () => true };
}

module.exports = { editor, document, Position };
