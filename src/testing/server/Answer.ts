/**
 * What a turn sends in answer to a request, and what that costs: a reply in the protocol asked for, streamed or not,
 * an error, or a body of its own.
 */
import * as Chat from "./Chat.ts"
import type { Outgoing } from "./Deliver.ts"
import { type Reply, reply, type Wire } from "./Reply.ts"
import { type Asked, errorOf, type Refusal } from "./Request.ts"
import * as Responses from "./Responses.ts"
import type { Temper } from "./Temper.ts"
import { none, type Tokens } from "./Tokens.ts"
import type { Turn } from "./Turn.ts"

/** What leaves, what it bills and how that counts once it has left. */
export interface Answer {
  readonly outgoing: Outgoing
  readonly billed: Tokens
  readonly outcome: "replied" | "failed" | "refused"
  /** What was replied; `undefined` for an error and for a body of its own. */
  readonly reply: Reply | undefined
}

const json = "application/json"
const eventStream = "text/event-stream; charset=utf-8"

/** One piece of JSON or text. */
export const whole = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): Outgoing => ({
  status,
  headers: { "content-type": json, ...headers },
  streamed: false,
  pieces: [body],
  finishAt: 0,
})

/** A refusal as it leaves. */
export const refused = (refusal: Refusal, headers?: Readonly<Record<string, string>>): Outgoing =>
  whole(refusal.status, errorOf(refusal), headers)

/** What a turn answers. */
export const answer = (turn: Turn, asked: Asked, n: number, tempers: ReadonlySet<Temper>): Answer => {
  const headers = headersOf(turn)
  if (turn.status !== undefined)
    return { outgoing: errorAnswer(turn.status, turn, headers), ...free, outcome: "refused" }
  if (turn.body !== undefined) {
    const billed = { ...none, ...turn.usage }
    return { outgoing: ownBody(turn.body, asked, headers), billed, outcome: "replied", reply: undefined }
  }
  const replied = reply(turn, asked, n, tempers)
  const { billed, failure } = replied
  if (failure !== undefined && !asked.streamed && (failure.as !== "failed" || asked.protocol === "chat")) {
    const outgoing = refused({ status: 500, message: failure.message, code: failure.code }, headers)
    return { outgoing, billed, outcome: "failed", reply: replied }
  }
  const outgoing = asked.streamed ? stream(replied) : whole(200, JSON.stringify(wholeOf(replied)))
  return {
    outgoing: { ...outgoing, headers: { ...outgoing.headers, ...headers } },
    billed,
    outcome: failure === undefined ? "replied" : "failed",
    reply: replied,
  }
}

const free = { billed: none, reply: undefined }

const headersOf = ({ headers, retryAfterMs, retryAfterSeconds }: Turn): Readonly<Record<string, string>> => ({
  ...headers,
  ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
  ...(retryAfterMs === undefined ? {} : { "retry-after-ms": String(retryAfterMs) }),
})

const errorAnswer = (status: number, turn: Turn, headers: Readonly<Record<string, string>>): Outgoing =>
  refused({ status, message: turn.errorMessage ?? `scripted error ${status}`, code: turn.errorCode }, headers)

const ownBody = (body: unknown, { streamed }: Asked, headers: Readonly<Record<string, string>>): Outgoing =>
  typeof body === "string"
    ? whole(200, body, { "content-type": streamed ? eventStream : "text/plain", ...headers })
    : whole(200, JSON.stringify(body), headers)

const wholeOf = (replied: Reply): Wire =>
  replied.asked.protocol === "chat" ? Chat.completion(replied) : Responses.response(replied)

const stream = (replied: Reply): Outgoing => {
  const sent = replied.asked.protocol === "chat" ? chatStream(replied) : responsesStream(replied)
  return { status: 200, headers: { "content-type": eventStream, "cache-control": "no-cache" }, streamed: true, ...sent }
}

const responsesStream = (replied: Reply): Pick<Outgoing, "pieces" | "finishAt"> => {
  const pieces = Responses.events(replied).map(
    (event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`,
  )
  return { pieces, finishAt: pieces.length - 1 }
}

const chatStream = (replied: Reply): Pick<Outgoing, "pieces" | "finishAt"> => {
  const { chunks, finishAt, isDone } = Chat.chunks(replied)
  const pieces = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  return { pieces: isDone ? [...pieces, "data: [DONE]\n\n"] : pieces, finishAt }
}
