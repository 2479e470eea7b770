#!/usr/bin/env node
/**
 * The executable `bursar-testing-server`: the testing server as a process of its own.
 *
 * The ledger file is written before the reply it counts leaves, and never seen half written.
 *
 * | exit code | meaning |
 * | --- | --- |
 * | 0 | stopped by SIGTERM or SIGINT; or help was shown |
 * | 1 | the script holds what is no script, or the port is taken |
 * | 2 | wrong usage, or a script that cannot be read; a sentence on stderr says what is wrong |
 */
import { existsSync, renameSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"
import { help, read, WrongUsage } from "./Arguments.ts"
import { type Running, start } from "./Server.ts"
import type { Script } from "./Turn.ts"

const main = async (): Promise<void> => {
  const found = read(process.argv.slice(2))
  if (found === "help") return void process.stdout.write(help)
  const { ledger, script, ...options } = found
  const running = await start({ ...options, script: loadScript(script) })
  if (ledger !== undefined) keepLedger(running, ledger)
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void running.stop())
  process.stdout.write(`${JSON.stringify({ url: running.url })}\n`)
}

// `require` reads JSON and modules alike.
const loadScript = (file: string): Script => {
  const place = path.resolve(file)
  if (!existsSync(place)) throw new WrongUsage(`--script ${file}: there is no such file`)
  const loaded: unknown = createRequire(import.meta.url)(place)
  const script = typeof loaded === "object" && loaded !== null && "default" in loaded ? loaded.default : loaded
  if (!isScript(script)) throw new Error(`${file} holds neither a list of turns nor a function`)
  return script
}

// Whether the turns of a list are turns is checked as the server starts.
const isScript = (value: unknown): value is Script => Array.isArray(value) || typeof value === "function"

// Written aside and renamed, so that a reader never finds half a ledger.
const keepLedger = (running: Running, file: string): void => {
  const write = () => {
    writeFileSync(`${file}.next`, JSON.stringify({ ...running.ledger(), entries: running.entries }))
    renameSync(`${file}.next`, file)
  }
  try {
    write()
  } catch (error) {
    void running.stop()
    throw new WrongUsage(`--ledger ${file} cannot be written: ${messageOf(error)}`)
  }
  running.onChange(write)
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

main().catch((error: unknown) => {
  const remedy = error instanceof WrongUsage ? ': see "bursar-testing-server --help"' : ""
  process.stderr.write(`bursar-testing-server: ${messageOf(error)}${remedy}\n`)
  process.exitCode = error instanceof WrongUsage ? 2 : 1
})
