/**
 * The client of the `openai` package, made so that it does what it is told and nothing else: no retries, no timeout of
 * its own, nothing out of the environment, no log.
 */
import * as Redacted from "effect/Redacted"
import { OpenAI } from "openai"
import type { Options, Settings } from "../Options.ts"
import { type Line, watched } from "./call.ts"
import type { Target } from "./failure.ts"

/** Longer than any timeout: ours is the one that counts. */
const never = 2 ** 31 - 1

export const makeLine = (options: Options, settings: Settings): Line => {
  const key = Redacted.value(options.apiKey)
  const usesHeader = options.auth === "api-key"
  return {
    timeoutMillis: settings.timeoutMillis,
    // What the package would otherwise read from the environment behind `Config`'s back is given here. Its log, which
    // `OPENAI_LOG` could turn on, stays off: it knows the requests.
    client: new OpenAI({
      apiKey: key,
      adminAPIKey: null,
      organization: options.organization ?? null,
      project: options.project ?? null,
      baseURL: settings.baseUrl,
      timeout: never,
      maxRetries: 0,
      logLevel: "off",
      fetch: watched(options.fetch ?? fetch),
      defaultQuery: { ...options.query },
      defaultHeaders: { ...options.headers, ...(usesHeader ? { Authorization: null, "api-key": key } : {}) },
    }),
  }
}

/** An address for errors: without a user name, password or query. */
export const makeTarget = (options: Options, settings: Settings, method: "GET" | "POST", path: string): Target => {
  const { origin, pathname } = new URL(settings.baseUrl)
  return {
    method,
    url: `${origin}${pathname.replace(/\/$/, "")}${path}`,
    secret: Redacted.value(options.apiKey),
  }
}
