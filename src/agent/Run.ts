/**
 * What all agents of one run share: the ledger, the log, and who is running.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Ledger } from "../budget/Budget.ts"
import type { Log } from "../journal/Journal.ts"
import type { AgentEnd, Report } from "./Outcome.ts"
import * as Budget from "../budget/Budget.ts"

/** A run in progress. */
export class Run {
  readonly log: Log
  readonly ledger: Ledger
  readonly #fibers = new Map<string, Fiber.Fiber<unknown>>()
  readonly #ends = new Map<string, AgentEnd>()

  constructor(options: { readonly log: Log; readonly ledger: Ledger }) {
    this.log = options.log
    this.ledger = options.ledger
  }

  get id(): string {
    return this.log.run
  }

  started(account: string, fiber: Fiber.Fiber<unknown>): void {
    this.#fibers.set(account, fiber)
  }

  ended(account: string, end: AgentEnd): void {
    this.#fibers.delete(account)
    this.#ends.set(account, end)
  }

  /** How an agent ended; one that never came to start was cancelled. */
  endOf(account: string): Pick<AgentEnd, "reason" | "result"> {
    return this.#ends.get(account) ?? { reason: "cancelled", result: "none" }
  }

  /** Ends new work in an account and below, then interrupts what runs there. Freeze first: no retry may slip between. */
  cancel(account: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.ledger.freeze(account, "cancelled")
      const fiber = this.#fibers.get(account)
      return fiber === undefined ? Effect.void : Fiber.interrupt(fiber)
    })
  }

  get report(): Report {
    const accounts = Budget.statement(this.ledger)
    const ends = accounts.flatMap((row) => this.#ends.get(row.account) ?? [])
    const overran = accounts.some((row) => row.overran)
    return { run: this.id, accounts, ends, overran, journal: this.log.location }
  }
}
