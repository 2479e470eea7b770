/**
 * Runs an example by its name: `npm run example -- repair --json` runs `examples/repair.ts --json`. Without a name it
 * lists them.
 *
 * Exit codes: those of the example, 2 for a name that is none.
 */
import { readdirSync, readFileSync } from "node:fs"

const folder = new URL(".", import.meta.url)

const names = readdirSync(folder)
  .filter((name) => name.endsWith(".ts") && name !== "run.ts")
  .map((name) => name.slice(0, -".ts".length))
  .toSorted()

const fileOf = (name: string): URL => new URL(`${name}.ts`, folder)

/** The beginning of what an example says about itself, up to the first colon or full stop. */
const titleOf = (name: string): string => {
  const text = readFileSync(fileOf(name), "utf8")
  return /^\/\*\*\n \* (.+?)[:.]/.exec(text)?.[1] ?? ""
}

const list = (): string => {
  const width = Math.max(...names.map((name) => name.length))
  return ["Examples:", ...names.map((name) => `  ${name.padEnd(width)}  ${titleOf(name)}`)].join("\n")
}

const [node = "", , name, ...rest] = process.argv
if (name === undefined) {
  console.log(`${list()}\n\nnpm run example -- NAME [OPTIONS]`)
} else if (names.includes(name)) {
  // An example reads its own options, as if it had been started itself.
  process.argv = [node, fileOf(name).pathname, ...rest]
  await import(fileOf(name).href)
} else {
  console.error(`there is no example ${JSON.stringify(name)}\n${list()}`)
  process.exitCode = 2
}
