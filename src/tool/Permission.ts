/**
 * Who may do what. A tool names the permissions it needs in its contract (`scope`); the {@link Permissions} of the current
 * fiber say yes, no, or ask.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * What an agent is about to do.
 *
 * @category permissions
 * @since 0.1.0
 */
export interface Request {
  /** The path of the account of the agent, from the root down. */
  readonly agent: string
  readonly tool: string
  readonly scope: string
  readonly params: unknown
}

/** Yes; a person has to agree; or no, and why. */
export type Permission = "allow" | "ask" | { readonly deny: string }

/**
 * Decides over permissions. What it denies is denied for good: the run stops as `blocked`.
 *
 * @category permissions
 * @since 0.1.0
 */
export interface Permissions {
  readonly check: (request: Request) => Effect.Effect<Permission>
}

/**
 * The permissions of the current fiber; everything is allowed unless some are provided.
 *
 * @category permissions
 * @since 0.1.0
 */
export const Permissions = Context.Reference<Permissions>("bursar/Permissions", {
  defaultValue: () => ({ check: () => Effect.succeed("allow" as const) }),
})

/**
 * Allows the scopes that match one of the patterns of `allow`, asks a person for those of `ask`, and denies any other.
 * A `*` stands for any rest.
 *
 * **Example** (Files may be read; writing is asked for)
 *
 * ```ts
 * import { Permission } from "bursar"
 * import * as Effect from "effect/Effect"
 *
 * const permissions = Permission.make({ allow: ["files:read"], ask: ["files:*"] })
 * const request = { agent: "root", tool: "write_file", scope: "files:write", params: {} }
 * await Effect.runPromise(permissions.check(request)) // => "ask"
 * ```
 *
 * @category permissions
 * @since 0.1.0
 */
export const make = (rules: {
  readonly allow?: ReadonlyArray<string>
  readonly ask?: ReadonlyArray<string>
}): Permissions => ({
  check: ({ scope }) =>
    Effect.sync(() => {
      const matches = (pattern: string) =>
        pattern.endsWith("*") ? scope.startsWith(pattern.slice(0, -1)) : scope === pattern
      if (rules.allow?.some(matches) === true) return "allow"
      return rules.ask?.some(matches) === true ? "ask" : { deny: `${scope} is not permitted` }
    }),
})

/**
 * Provides {@link Permissions}.
 *
 * @category permissions
 * @since 0.1.0
 */
export const layer = (rules: Parameters<typeof make>[0]): Layer.Layer<never> => Layer.succeed(Permissions)(make(rules))
