/**
 * What a failed request means: for the bill (a `Report`) and for the program (the reason of an `AiError`).
 *
 * The law of this file: an error says numbers and identifiers, never what the provider wrote. Providers quote prompts
 * and keys in their messages ("Incorrect API key provided: sk-..."), so no text of theirs is passed on.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import { APIError } from "openai"
import type * as Provider from "../../model/Provider.ts"
import { failedReason, unreadable } from "./answer.ts"
import type { Ending } from "./stream.ts"

/** How far a request got; kept by the `fetch` it was sent with. */
export interface Wire {
  /** The request was handed to `fetch`. */
  sent: boolean
  /** Status of the reply, once its headers are there. */
  status: number | undefined
  /** Its time is up. */
  isLate: boolean
  /** The id of its reply, once a stream has told it. */
  id: string | undefined
  /** The reply, once all of it is there. */
  reply: { readonly body: unknown } | undefined
  readonly abort: AbortController
}

/** A stream that was no whole reply. */
export class Unread extends Error {
  readonly ending: Exclude<Ending, { readonly _tag: "Whole" }>
  constructor(ending: Exclude<Ending, { readonly _tag: "Whole" }>) {
    super("the stream is no whole reply")
    this.ending = ending
  }
}

/** A failed request, seen from the bill and from the program. */
export interface Failure {
  readonly report: Provider.Report
  readonly reason: AiError.AiErrorReason
  /** The provider does not know the reply that the request continued. */
  readonly isForgotten?: boolean
}

/** Where the request went and what must never be repeated about it. */
export interface Target {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly secret: string
}

/** What `error`, thrown while a request was under way, means. Never throws. */
export const fromError = (error: unknown, wire: Wire, target: Target): Failure => {
  if (error instanceof APIError && typeof error.status === "number") return refused(error, error.status, target)
  if (error instanceof Unread) return unread(error.ending, target)
  const broken = (description: string): Failure => ({
    report: wire.id === undefined ? { _tag: "Lost" } : { _tag: "Lost", id: wire.id },
    reason: network("TransportError", target, description),
  })
  if (!wire.sent) {
    return { report: { _tag: "NotSent" }, reason: network("EncodeError", target, "the request could not be built") }
  }
  if (wire.isLate) return broken("no whole reply within the timeout")
  const codes = codesOf(error)
  if (wire.status === undefined && codes.length > 0 && codes.every(isBeforeSending)) {
    const description = `${codes[0]}, the connection was never opened`
    return { report: { _tag: "NotSent" }, reason: network("TransportError", target, description) }
  }
  return broken(`${codes[0] ?? "no code"}, the connection broke before the reply was complete`)
}

/** A stream that did not end as a reply: generating had begun, so that it may be billed. */
const unread = (ending: Unread["ending"], target: Target): Failure => {
  const report = ending.id === undefined ? ({ _tag: "Lost" } as const) : ({ _tag: "Lost", id: ending.id } as const)
  if (ending._tag === "Failed") return { report, reason: failedReason(ending.code) }
  return ending.why === "unreadable"
    ? { report, reason: unreadable("the stream has an event that cannot be read") }
    : { report, reason: network("TransportError", target, "the stream ended before the reply was complete") }
}

const network = (reason: AiError.NetworkError["reason"], target: Target, description: string) =>
  new AiError.NetworkError({ reason, method: target.method, url: target.url, description })

const refused = (error: APIError, status: number, target: Target): Failure => {
  const retryAfterMillis = retryAfterMillisOf(error.headers)
  const isForgotten =
    status === 404 || error.code === "previous_response_not_found" || error.param === "previous_response_id"
  return {
    report: { _tag: "Refused", status, retryAfterMillis },
    reason: refusedReason(error, status, target),
    isForgotten,
  }
}

const refusedReason = (error: APIError, status: number, target: Target): AiError.AiErrorReason => {
  const identifiers = {
    code: identifier(error.code, target),
    type: identifier(error.type, target),
    param: identifier(error.param, target),
    requestId: identifier(error.requestID, target),
  }
  const known = Object.entries(identifiers).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const details = known.map(([name, value]) => ` [${name}: ${value}]`).join("")
  const common = {
    description: `HTTP ${status} from ${target.method} ${target.url}${details}`,
    http: { response: { status, headers: {} } },
    metadata: { openai: Object.fromEntries(known) },
  }
  if (status === 429 && identifiers.code === "insufficient_quota") return new AiError.QuotaExhaustedError(common)
  if (status === 429) return new AiError.RateLimitError({ ...common, retryAfter: retryAfterOf(error.headers) })
  // Status codes that `effect/ai` leaves unknown, but that say plainly: this request will never work.
  if (status === 404 || status === 413 || status === 422) return new AiError.InvalidRequestError(common)
  return AiError.reasonFromHttpStatus({ status, ...common })
}

// A word or an id, and not the key: what a server puts here is still only its word.
const identifier = (value: unknown, { secret }: Target): string | undefined =>
  typeof value === "string" && /^[\w.:[\]-]{1,80}$/.test(value) && !value.includes(secret) ? value : undefined

const retryAfterOf = (headers: Headers | undefined): Duration.Duration | undefined => {
  const millis = retryAfterMillisOf(headers)
  return millis === undefined ? undefined : Duration.millis(millis)
}

// OpenAI's own header is in milliseconds; the standard one is in seconds or a date, which is read against the
// server's own clock where it tells it.
const retryAfterMillisOf = (headers: Headers | undefined): number | undefined => {
  const exact = Number.parseFloat(headers?.get("retry-after-ms") ?? "")
  const text = headers?.get("retry-after") ?? ""
  const seconds = /^[\d.]+$/.test(text) ? Number(text) : (Date.parse(text) - serverNow(headers)) / 1000
  const millis = Number.isFinite(exact) ? exact : seconds * 1000
  return Number.isFinite(millis) ? Math.max(0, Math.round(millis)) : undefined
}

const serverNow = (headers: Headers | undefined): number => {
  const date = Date.parse(headers?.get("date") ?? "")
  return Number.isFinite(date) ? date : Date.now()
}

/** The system codes behind an error: its own, its causes', those of every address that was tried. */
const codesOf = (error: unknown, depth = 0): Array<string> => {
  if (!Predicate.isObject(error) || depth > 5) return []
  const { code, syscall, errors, cause } = error
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap((one) => codesOf(one, depth + 1))
  if (typeof code === "string" && /^[A-Z0-9_]{1,64}$/.test(code)) {
    return [syscall === "connect" || syscall === "getaddrinfo" ? `${syscall} ${code}` : code]
  }
  return codesOf(cause, depth + 1)
}

// Failures of name lookup, of opening the connection and of checking the certificate: no byte of the request left.
const isBeforeSending = (code: string): boolean =>
  /^(connect|getaddrinfo) /.test(code) ||
  /^(UND_ERR_CONNECT_TIMEOUT|ERR_INVALID_URL|ERR_TLS_|CERT_)/.test(code) ||
  tls.has(code)

const tls = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
])
