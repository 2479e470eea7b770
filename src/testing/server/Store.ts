/**
 * Stored responses: what can be retrieved later, continued by `previous_response_id`, and cancelled in the background.
 *
 * Its law: a stored response tells its usage even where the reply that was sent did not, or never arrived.
 */
import { type Reply, storedUsage, type Wire } from "./Reply.ts"
import type { Refusal } from "./Request.ts"
import * as Responses from "./Responses.ts"
import type { Json } from "./Turn.ts"

/** A stored response. */
interface Stored {
  readonly reply: Reply
  status: Responses.Status
  /** Ends what runs in the background; `undefined` for a response that was asked for in the foreground. */
  readonly cancel: (() => void) | undefined
}

/** The responses a server keeps. */
export interface Store {
  /** Keeps a response that is being generated, when its request lets it. */
  readonly begin: (reply: Reply, cancel: (() => void) | undefined) => void
  readonly end: (reply: Reply, status: Responses.Status) => void
  /** Forgets a response nobody got and nobody pays. */
  readonly drop: (reply: Reply) => void
  /** The conversation up to a response that has ended, its own output included. */
  readonly conversation: (id: string) => ReadonlyArray<Json> | undefined
  readonly retrieve: (id: string) => Wire | Refusal
  readonly cancel: (id: string) => Wire | Refusal
}

/** Nothing stored. */
export const make = (): Store => {
  const kept = new Map<string, Stored>()
  const find = <A>(id: string, then: (stored: Stored) => A): A | Refusal => {
    const stored = kept.get(id)
    return stored === undefined ? { status: 404, message: `Response with id '${id}' not found.` } : then(stored)
  }
  return {
    begin: (reply, cancel) => {
      if (reply.asked.stored) kept.set(Responses.idOf(reply.n), { reply, status: "in_progress", cancel })
    },
    end: (reply, status) => {
      const stored = kept.get(Responses.idOf(reply.n))
      if (stored !== undefined) stored.status = status
    },
    drop: (reply) => void kept.delete(Responses.idOf(reply.n)),
    conversation: (id) => {
      const stored = kept.get(id)
      if (stored === undefined || !isOver(stored.status)) return undefined
      return [...stored.reply.asked.body.input, ...Responses.itemsOf(stored.reply).map((item): Json => ({ ...item }))]
    },
    retrieve: (id) => find(id, toWire),
    cancel: (id) =>
      find(id, (stored) => {
        if (stored.cancel === undefined) return { status: 400, message: "Cannot cancel a synchronous response." }
        if (!isOver(stored.status)) stored.cancel()
        return toWire(stored)
      }),
  }
}

const isOver = (status: Responses.Status): boolean => status === "completed" || status === "incomplete"

const toWire = ({ reply, status }: Stored): Wire =>
  status === Responses.endOf(reply)
    ? Responses.response({ ...reply, stated: storedUsage(reply) })
    : Responses.unfinished(reply, status)
