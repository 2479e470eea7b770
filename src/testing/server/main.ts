/**
 * The testing server as a process of its own.
 *
 * `node main.ts --script FILE.mjs|FILE.json [--port N] [--ledger FILE] [--latency MILLIS]`
 *
 * The script is a list of turns (JSON, or the default export of a module) or a function (default export). Prints one
 * line, `{"url":...}`, when it listens; writes its ledger as JSON to `--ledger` before the reply it counts leaves;
 * stops on SIGTERM or SIGINT with exit code 0. A wrong script or argument ends it with 1 and a message on stderr.
 */
import { renameSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { type Running, start } from "./Server.ts"
import type { Script } from "./Turn.ts"

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      script: { type: "string" },
      port: { type: "string", default: "0" },
      ledger: { type: "string" },
      latency: { type: "string", default: "0" },
    },
  })
  if (values.script === undefined) throw new Error("--script FILE is missing")
  const running = await start({
    script: loadScript(values.script),
    port: Number(values.port),
    latencyMs: Number(values.latency),
  })
  if (values.ledger !== undefined) keepLedger(running, values.ledger)
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void running.stop())
  process.stdout.write(`${JSON.stringify({ url: running.url })}\n`)
}

// `require` reads JSON and modules alike.
const loadScript = (file: string): Script => {
  const loaded: unknown = createRequire(import.meta.url)(path.resolve(file))
  const script = typeof loaded === "object" && loaded !== null && "default" in loaded ? loaded.default : loaded
  if (!isScript(script)) throw new Error(`${file} holds neither a list of turns nor a function`)
  return script
}

// Whether the turns of a list are turns is checked as the server starts.
const isScript = (value: unknown): value is Script => Array.isArray(value) || typeof value === "function"

// Written aside and renamed, so that a reader never finds half a ledger.
const keepLedger = (running: Running, file: string): void => {
  const write = () => {
    writeFileSync(`${file}.next`, JSON.stringify(running.ledger()))
    renameSync(`${file}.next`, file)
  }
  write()
  running.onChange(write)
}

main().catch((error: unknown) => {
  process.stderr.write(`testing server: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
