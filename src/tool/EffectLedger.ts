/**
 * Which effects a run has had, so that none happens twice. An effect counts once under its key: asked for again, it is
 * answered with the recorded result. An effect of which nobody knows whether it happened is not repeated.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Restore } from "./Setting.ts"
import type { Content } from "../event/Content.ts"
import { digest } from "../event/Content.ts"
import type { Event, EventOf, Recorded, Resource } from "../event/Event.ts"

/** The result that stands for an effect. */
export interface Receipt {
  readonly call: string
  readonly result: Content | undefined
  readonly resources: ReadonlyArray<Resource>
  readonly untrusted: boolean
}

/** What is known of a key: the receipt, or that the caller is the one who has the effect now. */
export type Claim = { readonly _tag: "Done"; readonly receipt: Receipt } | { readonly _tag: "Claimed" }

const claimed: Claim = { _tag: "Claimed" }

/** The effects of one run, over all its agents. Effects that must not be repeated go by their mark. */
export class EffectLedger {
  readonly #receipts = new Map<string, Receipt>()
  readonly #uncertain = new Set<string>()
  /** Effects that began and have no result, by the call that began them. */
  readonly #begun = new Map<string, string>()
  /** Questions about effects, by the call that asked. */
  readonly #asked = new Map<string, { readonly mark: string; readonly approval: string }>()
  readonly #running = new Map<string, Deferred.Deferred<void>>()

  /** Takes up what a journal says: the effects of an earlier process. */
  static of(events: ReadonlyArray<Recorded>): EffectLedger {
    const ledger = new EffectLedger()
    const keys = new Map<string, string>()
    for (const { event } of events) {
      if (event._tag === "CallStarted") {
        if (event.key !== undefined) keys.set(idOf(event), event.key)
        if (event.mark !== undefined) ledger.#begun.set(idOf(event), event.mark)
      }
      const mark =
        event._tag === "ApprovalRequested" && event.kind === "uncertain" ? ledger.#begun.get(idOf(event)) : undefined
      if (event._tag === "ApprovalRequested" && mark !== undefined) ledger.asked(event, mark, event.approval)
      if (event._tag === "ApprovalDecided") ledger.answered(event)
      if (event._tag !== "CallEnded") continue
      ledger.ended(event)
      const key = keys.get(idOf(event))
      if (key !== undefined && event.outcome === "ok") ledger.finished(key, receiptOf(event))
    }
    return ledger
  }

  /** A question has its answer: nobody waits for it any more. */
  answered(question: { readonly agent: string; readonly call: string }): void {
    this.#asked.delete(idOf(question))
  }

  /** A call has its result: what it had begun is settled, or nobody will know any more what became of it. */
  ended(event: EventOf<"CallEnded">): void {
    this.#begun.delete(idOf(event))
    this.#asked.delete(idOf(event))
    if (event.uncertain !== undefined) this.#uncertain.add(event.uncertain)
  }

  receipt(key: string): Receipt | undefined {
    return this.#receipts.get(key)
  }

  /**
   * Waits while the effect is under way elsewhere, then takes it or answers with its receipt. Only the wait lets itself be
   * interrupted, through `restore`: a claim that was taken is given to somebody who releases it.
   */
  claim(key: string, restore: Restore): Effect.Effect<Claim> {
    return Effect.suspend(() => {
      const receipt = this.#receipts.get(key)
      if (receipt !== undefined) return Effect.succeed<Claim>({ _tag: "Done", receipt })
      const running = this.#running.get(key)
      if (running !== undefined) return Effect.andThen(restore(Deferred.await(running)), this.claim(key, restore))
      this.#running.set(key, Deferred.makeUnsafe<void>())
      return Effect.succeed(claimed)
    })
  }

  /** Ends a claim, whatever came of it. */
  release(key: string): void {
    const running = this.#running.get(key)
    this.#running.delete(key)
    if (running !== undefined) Deferred.doneUnsafe(running, Effect.void)
  }

  finished(key: string, receipt: Receipt): void {
    this.#receipts.set(key, receipt)
  }

  /** Whether an effect may have happened, and nobody knows. */
  isUncertain(mark: string): boolean {
    return this.#uncertain.has(mark) || [...this.#begun.values()].includes(mark)
  }

  unknown(mark: string): void {
    this.#uncertain.add(mark)
  }

  /** A person was asked whether a call had its effect: one like it waits for the same answer. */
  asked(by: { readonly agent: string; readonly call: string }, mark: string, approval: string): void {
    this.#asked.set(idOf(by), { mark, approval })
  }

  questionAbout(mark: string): string | undefined {
    return [...this.#asked.values()].find((one) => one.mark === mark)?.approval
  }
}

const idOf = (event: { readonly agent: string; readonly call: string }): string => `${event.agent} ${event.call}`

const receiptOf = (event: Extract<Event, { _tag: "CallEnded" }>): Receipt => ({
  call: idOf(event),
  result: event.result,
  resources: event.resources ?? [],
  untrusted: event.untrusted ?? false,
})

/** Stands for a call of a tool with these arguments, whatever the order of their names. */
export const printOf = (tool: string, version: string, params: unknown): string =>
  digest(JSON.stringify([tool, version, canonical(params)]))

/** Arguments without those that mean nothing. */
export const meant = (params: unknown, volatile: ReadonlyArray<string>): unknown =>
  typeof params === "object" && params !== null && volatile.length > 0
    ? Object.fromEntries(Object.entries(params).filter(([name]) => !volatile.includes(name)))
    : params

/** The same value with the names of every object in order. */
export const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, canonical(item)]),
  )
}
