/**
 * One GET request to a server whose address was looked at before. Where it redirects to is told, not followed.
 */
import { hash } from "node:crypto"
import * as http from "node:http"
import * as https from "node:https"
import type { LookupFunction } from "node:net"
import { pipeline } from "node:stream"
import * as zlib from "node:zlib"
import * as ToolError from "../../tool/ToolError.ts"
import type { Address } from "./address.ts"

/** A request and what of its answer is wanted. */
export interface Request {
  readonly url: URL
  /** The only ones that are connected to. */
  readonly addresses: ReadonlyArray<Address>
  readonly maxBytes: number
  readonly isText: (contentType: string) => boolean
}

/** What was found, or where to go on. */
export type Answer =
  | { readonly _tag: "Redirect"; readonly location: string }
  | {
      readonly _tag: "Document"
      readonly status: number
      readonly contentType: string
      readonly text: string
      readonly version: string
      readonly leftOut: string | undefined
    }

/** Fails with a `ToolError`, or with whatever the connection failed with. */
export const get = async (request: Request, signal: AbortSignal): Promise<Answer> => {
  const response = await respond(request, signal)
  try {
    const status = response.statusCode ?? 0
    const { location } = response.headers
    if (redirecting.includes(status) && location !== undefined) return { _tag: "Redirect", location }
    if (status < 200 || status > 299) throw refused(request.url, response)
    const contentType = response.headers["content-type"] ?? ""
    if (contentType !== "" && !request.isText(mediaTypeOf(contentType))) {
      throw ToolError.mistake("EMEDIA", `${request.url.href} is ${mediaTypeOf(contentType)}, which is not read as text`)
    }
    const { bytes, cut } = await bodyOf(request, response)
    if (contentType === "" && bytes.includes(0)) {
      throw ToolError.mistake("EMEDIA", `${request.url.href} is not text`)
    }
    return {
      _tag: "Document",
      status,
      contentType,
      text: decoderFor(contentType).decode(bytes, { stream: true }),
      version: response.headers.etag ?? `sha256:${hash("sha256", bytes)}`,
      leftOut: cut ? `what comes after the first ${bytes.length} bytes` : undefined,
    }
  } finally {
    response.destroy()
  }
}

const redirecting = [301, 302, 303, 307, 308]

const headers = {
  accept: "text/*, application/json, application/xml;q=0.9, */*;q=0.1",
  "accept-encoding": "gzip, deflate, br",
  "user-agent": "bursar",
}

/** A connection of its own, past any pool and proxy, so that it goes where was looked. */
const respond = ({ addresses, url }: Request, signal: AbortSignal): Promise<http.IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? https : http).request({
      protocol: url.protocol,
      hostname: hostOf(url),
      port: url.port,
      path: `${url.pathname}${url.search}`,
      method: "GET",
      headers: { ...headers, host: url.host },
      agent: false,
      lookup: only(addresses),
      signal,
    })
    request.once("response", resolve)
    request.on("error", reject)
    request.end()
  })

/** The name or address in a URL, as the system wants it. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, "$1")

const only =
  (addresses: ReadonlyArray<Address>): LookupFunction =>
  (_, options, answer) => {
    const [first] = addresses
    if (options.all === true) answer(null, [...addresses])
    else answer(null, first?.address ?? "", first?.family ?? 4)
  }

const bodyOf = async ({ maxBytes }: Request, response: http.IncomingMessage) => {
  const chunks: Array<Buffer> = []
  let total = 0
  for await (const chunk of decompressed(response)) {
    chunks.push(chunk as Buffer)
    total += (chunk as Buffer).length
    if (total > maxBytes) return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), cut: true }
  }
  return { bytes: Buffer.concat(chunks), cut: false }
}

const decompressed = (response: http.IncomingMessage): NodeJS.ReadableStream => {
  const encoding = (response.headers["content-encoding"] ?? "identity").toLowerCase()
  if (encoding === "identity") return response
  const decoder = decompressors[encoding]?.()
  if (decoder === undefined) {
    throw ToolError.mistake("EMEDIA", `its content comes in an encoding that is not read: ${encoding}`)
  }
  // What goes wrong shows where the decoder is read.
  return pipeline(response, decoder, () => undefined)
}

const decompressors: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: zlib.createGunzip,
  "x-gzip": zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
}

const mediaTypeOf = (contentType: string): string => (contentType.split(";")[0] ?? "").trim().toLowerCase()

const decoderFor = (contentType: string): TextDecoder => {
  const charset = /charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1] ?? "utf-8"
  try {
    return new TextDecoder(charset)
  } catch {
    return new TextDecoder("utf-8")
  }
}

/** The failure for a status that brings nothing. */
const refused = (url: URL, response: http.IncomingMessage): ToolError.ToolError => {
  const { statusCode: status = 0, statusMessage = "" } = response
  const what = `${url.href} answered with ${`${status} ${statusMessage}`.trim()}`
  if (status < 500 && !passing.includes(status)) return ToolError.mistake("EHTTP", what)
  const retryAfterMillis = waitOf(response.headers["retry-after"])
  return ToolError.transient("EHTTP", what, retryAfterMillis === undefined ? {} : { retryAfterMillis })
}

/** Too long, too early, too often. */
const passing = [408, 425, 429]

const waitOf = (header: string | undefined): number | undefined => {
  if (header === undefined) return undefined
  const millis = /^\s*\d+\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(millis) ? Math.max(0, millis) : undefined
}
