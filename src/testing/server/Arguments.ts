/**
 * The arguments of `bursar-testing-server`.
 *
 * Its law: every argument is understood or refused by name, with the remedy; none is ignored.
 */
import { parseArgs } from "node:util"
import { Temper } from "./Temper.ts"

/** What the command is to do. */
export interface Arguments {
  readonly script: string
  readonly ledger: string | undefined
  readonly port: number
  readonly latencyMs: number
  readonly chunkLatencyMs: number
  readonly temper: ReadonlyArray<Temper>
  readonly billsAborted: boolean
  readonly hasCounter: boolean
}

/** What `--help` prints. */
export const help = `A model provider on this machine: Responses and Chat Completions, streamed and not, from a script.

Usage: bursar-testing-server --script FILE [options]

  --script FILE           a list of turns (JSON, or the default export of a module), or a function (default export)
  --port N                the port to listen on; a free one when absent
  --ledger FILE           where the ledger is kept as JSON: totals and an entry for each request
  --latency MILLIS        how long each reply takes to begin
  --chunk-latency MILLIS  the time between the events of a stream
  --temper NAME           how it deviates from what is asked; may be repeated. One of
                          ${inLines(Temper.literals)}
  --bills-aborted         bills replies whose client went away before their end
  --no-counter            has no input counter, like most compatible servers
  --help                  prints this

Prints one line, {"url":...}, when it listens. Stops on SIGTERM and SIGINT.
`

function inLines(names: ReadonlyArray<string>): string {
  const half = Math.ceil(names.length / 2)
  return [names.slice(0, half), names.slice(half)].map((some) => some.join(", ")).join(`,\n${" ".repeat(26)}`)
}

/** An argument that cannot be meant; the message says which and what would be right. */
export class WrongUsage extends Error {}

/** The arguments, or `"help"`. Throws `WrongUsage`. */
export const read = (args: ReadonlyArray<string>): Arguments | "help" => {
  const values = parsed(args)
  if (values.help === true) return "help"
  if (values.script === undefined) throw new WrongUsage("--script FILE is missing")
  return {
    script: values.script,
    ledger: values.ledger,
    port: natural("--port", values.port ?? "0", 65_535),
    latencyMs: natural("--latency", values.latency ?? "0", longestTimer),
    chunkLatencyMs: natural("--chunk-latency", values["chunk-latency"] ?? "0", longestTimer),
    temper: (values.temper ?? []).map(toTemper),
    billsAborted: values["bills-aborted"] === true,
    hasCounter: values["no-counter"] !== true,
  }
}

/** Node's timers fire at once beyond this. */
const longestTimer = 2 ** 31 - 1

const parsed = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        script: { type: "string" },
        port: { type: "string" },
        ledger: { type: "string" },
        latency: { type: "string" },
        "chunk-latency": { type: "string" },
        temper: { type: "string", multiple: true },
        "bills-aborted": { type: "boolean" },
        "no-counter": { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }).values
  } catch (error) {
    throw new WrongUsage(error instanceof Error ? error.message : String(error))
  }
}

const natural = (name: string, value: string, most: number): number => {
  const number = Number(value)
  if (/^\d+$/.test(value) && number <= most) return number
  throw new WrongUsage(`${name} is ${JSON.stringify(value)}; a whole number from 0 to ${most} is expected`)
}

const toTemper = (value: string): Temper => {
  const temper = Temper.literals.find((name) => name === value)
  if (temper !== undefined) return temper
  throw new WrongUsage(`--temper is ${JSON.stringify(value)}; expected is one of ${Temper.literals.join(", ")}`)
}
