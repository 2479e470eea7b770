/**
 * The tool `fetch_url`: reads a text from the public web. It only ever asks with GET, and never connects to an address of
 * this machine or of the networks around it: names are resolved here, the addresses are looked at, and the connection goes
 * to what was looked at. Each redirect is looked at in the same way.
 */
import * as dns from "node:dns/promises"
import { isIP } from "node:net"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Contract from "../tool/Contract.ts"
import * as ToolError from "../tool/ToolError.ts"
import { type Address, admits } from "./internal/address.ts"
import { codeOf } from "./internal/errno.ts"
import { type Answer, get, hostOf } from "./internal/hop.ts"

/**
 * What may be fetched, and how much of it.
 *
 * **Units**: `maxBytes` (256 KiB) is how much of an answer is read, after decompression; `timeout` (30 seconds) is for
 * everything together, with at most `maxRedirects` (5).
 *
 * @category fetching
 * @since 0.1.0
 */
export interface Options {
  readonly maxBytes?: number
  readonly maxRedirects?: number
  readonly timeout?: Duration.Input
  /** Decides over each address that is gone to, the first one and those of redirects. All, unless given. */
  readonly allow?: (url: URL) => boolean
  /** Addresses and blocks that may be connected to although they are not public, such as `127.0.0.1` or `10.1.0.0/16`. */
  readonly allowAddresses?: ReadonlyArray<string>
  /** Media types that are read as text besides `text/*`, JSON, XML, YAML, JavaScript and the like. */
  readonly contentTypes?: ReadonlyArray<string>
  /** How names are resolved; by the system unless given. */
  readonly lookup?: (host: string) => Promise<ReadonlyArray<Address>>
}

const FetchUrl = Contract.annotate(
  Tool.make("fetch_url", {
    description:
      "Reads a text from the web by its address (http or https). It is returned as it is, HTML with its marks.",
    parameters: Schema.Struct({ url: Schema.String }),
    success: Schema.Struct({
      url: Schema.String.annotate({ description: "Where it was found, after redirects" }),
      status: Schema.Int,
      contentType: Schema.String,
      text: Schema.String,
      version: Schema.String,
      leftOut: Schema.optionalKey(Schema.String.annotate({ description: "What was left out, if anything" })),
    }),
    failure: ToolError.ToolError,
  }),
  {
    effect: "read",
    trust: "untrusted",
    timeout: "1 minute",
    scope: ({ url }) => [`fetch:${URL.parse(url)?.hostname ?? ""}`],
    resources: (_, { url, version }) => [{ path: url, version }],
  },
)

/**
 * The tool `fetch_url`. An answer that is longer than `maxBytes` is cut and says so. Its version is the entity tag of the
 * server, else a digest of what was read. The permission it needs is `fetch:` with the name of the host.
 *
 * **Fails with** `EPERM` for what may not be fetched, `EINVAL` for what is no address, `EMEDIA` for what is no text,
 * `EREDIRECT` after too many redirects, `ENOTFOUND` for a name that does not exist, `EHTTP` for other answers than 2xx.
 * 408, 425, 429 and 5xx may pass, as do lost connections and `ETIMEDOUT`; a server may say how long to wait.
 *
 * @category fetching
 * @since 0.1.0
 */
export const toolkit = Toolkit.make(FetchUrl)

type Found = Tool.Success<typeof FetchUrl>

/**
 * What {@link toolkit} does. Provide it to the run of the agent.
 *
 * **Example** (An agent that may not look around where it runs)
 *
 * ```ts
 * import { Agent, Policy, Proposal } from "bursar"
 * import { Fetch } from "bursar/node"
 * import * as Effect from "effect/Effect"
 *
 * const reader = Agent.make("reader", {
 *   toolkit: Fetch.toolkit,
 *   policy: Policy.make(({ turns }) =>
 *     turns.length === 0
 *       ? Proposal.call("fetch_url", { url: "http://169.254.169.254/latest/meta-data" })
 *       : Proposal.finish(turns[0]!.observations[0]!.error!.code),
 *   ),
 * })
 * const outcome = await Effect.runPromise(
 *   Agent.run(reader, "Look around", { budget: { steps: 3 } }).pipe(Effect.provide(Fetch.layer())),
 * )
 * outcome._tag === "Completed" && outcome.answer // => "EPERM"
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<Tool.HandlersFor<(typeof toolkit)["tools"]>> => {
  const fetching: Fetching = {
    admitted: admits(options.allowAddresses ?? []),
    allow: options.allow ?? (() => true),
    isText: textLike(options.contentTypes ?? []),
    lookup: options.lookup ?? ((host) => dns.lookup(host, { all: true })),
    maxBytes: options.maxBytes ?? 256 * 1024,
    maxRedirects: options.maxRedirects ?? 5,
  }
  return toolkit.toLayer({
    fetch_url: ({ url }) =>
      Effect.timeoutOrElse(follow(fetching, url), {
        duration: options.timeout ?? "30 seconds",
        orElse: () => Effect.fail(ToolError.transient("ETIMEDOUT", `${url} took too long`)),
      }),
  })
}

interface Fetching extends Required<Pick<Options, "allow" | "lookup" | "maxBytes" | "maxRedirects">> {
  readonly admitted: (address: string) => boolean
  readonly isText: (contentType: string) => boolean
}

const follow = (fetching: Fetching, asked: string): Effect.Effect<Found, ToolError.ToolError> =>
  Effect.gen(function* () {
    let url = yield* parse(asked)
    for (let redirects = 0; redirects <= fetching.maxRedirects; redirects++) {
      const answer = yield* hop(fetching, url)
      if (answer._tag === "Document") {
        const { _tag, leftOut, ...found } = answer
        return { url: url.href, ...found, ...(leftOut === undefined ? {} : { leftOut }) }
      }
      url = yield* parse(answer.location, url)
    }
    return yield* ToolError.mistake("EREDIRECT", `${asked} redirects more than ${fetching.maxRedirects} times`)
  })

const hop = (fetching: Fetching, url: URL): Effect.Effect<Answer, ToolError.ToolError> =>
  Effect.gen(function* () {
    if (!fetching.allow(url)) return yield* ToolError.permission("EPERM", `${url.href} may not be fetched`)
    const addresses = yield* addressesOf(fetching, url)
    return yield* Effect.tryPromise({
      try: (signal) => get({ url, addresses, maxBytes: fetching.maxBytes, isText: fetching.isText }, signal),
      catch: (error) => (error instanceof ToolError.ToolError ? error : failureOf(url, error)),
    })
  })

const parse = (text: string, base?: URL): Effect.Effect<URL, ToolError.ToolError> => {
  const url = URL.parse(text, base)
  if (url === null) return Effect.fail(ToolError.mistake("EINVAL", `${text} is not the address of a page`))
  url.hash = ""
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return Effect.fail(ToolError.permission("EPERM", `${url.protocol} is not fetched, only http: and https:`))
  }
  if (url.username !== "" || url.password !== "") {
    return Effect.fail(ToolError.mistake("EINVAL", "an address with a name or password in it is not fetched"))
  }
  return Effect.succeed(url)
}

/** The addresses of a host that may be connected to. */
const addressesOf = (fetching: Fetching, url: URL): Effect.Effect<ReadonlyArray<Address>, ToolError.ToolError> =>
  Effect.gen(function* () {
    const host = hostOf(url)
    const family = isIP(host)
    const found =
      family === 0
        ? yield* Effect.tryPromise({ try: () => fetching.lookup(host), catch: (error) => failureOf(url, error) })
        : [{ address: host, family }]
    const admitted = found.filter(({ address }) => fetching.admitted(address))
    if (admitted.length > 0) return admitted
    return yield* ToolError.permission("EPERM", `${url.host} is not on the public internet`)
  })

/** What goes wrong with a connection may pass, unless it is known not to. */
const failureOf = (url: URL, error: unknown): ToolError.ToolError => {
  const code = codeOf(error) ?? "EFAILED"
  if (code === "ENOTFOUND" || code === "ENODATA") {
    return ToolError.mistake("ENOTFOUND", `there is no host ${url.hostname}`)
  }
  if (lasting.test(code)) return ToolError.mistake(code, `${url.href} cannot be read (${code})`)
  return ToolError.transient(code, `the connection to ${url.host} failed (${code})`)
}

/** Certificates that are not valid, answers that are not HTTP, content that cannot be decompressed. */
const lasting = /^(CERT_|DEPTH_|SELF_|UNABLE_|ERR_TLS|ERR_SSL|EPROTO|HPE_|Z_|ERR__ERROR|ERR_BROTLI|ERR_INVALID)/

const textLike =
  (more: ReadonlyArray<string>) =>
  (contentType: string): boolean =>
    contentType.startsWith("text/") ||
    /^application\/(?:.*\+)?(?:json|xml|yaml|toml)$/.test(contentType) ||
    /\+(?:json|xml|yaml)$/.test(contentType) ||
    otherTexts.includes(contentType) ||
    more.includes(contentType)

const otherTexts = [
  "application/javascript",
  "application/ecmascript",
  "application/x-javascript",
  "application/x-yaml",
  "application/x-ndjson",
  "application/ndjson",
  "application/jsonlines",
  "application/sql",
  "application/x-sh",
  "application/x-www-form-urlencoded",
  "application/xhtml+xml",
]
