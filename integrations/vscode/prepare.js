// Puts what is made elsewhere into the extension: the grammar, the JSON Schema of pipeline files, the licence.
"use strict";

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const root = path.join(__dirname, "..", "..");
const [program, ...args] = (process.env.ERRATA_COMMAND || "errata").split(" ");

fs.mkdirSync(path.join(__dirname, "schemas"), { recursive: true });
fs.writeFileSync(path.join(__dirname, "schemas", "pipeline.schema.json"), execFileSync(program, [...args, "schema"]));
fs.copyFileSync(path.join(root, "docs", "editors", "cxl.tmLanguage.json"), path.join(__dirname, "syntaxes", "cxl.tmLanguage.json"));
fs.copyFileSync(path.join(root, "LICENSE"), path.join(__dirname, "LICENSE"));
