/**
 * Folders to write in, and handlers of tools as an agent finds them.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Tool from "effect/ai/Tool"
import { type Contract, ToolError } from "../../src/index.ts"

/** A folder that is removed with the scope; its real path. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "bursar-test-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true })),
)

/** Writes files by their paths; a text that starts with `-> ` is a symbolic link. */
export const fill = (root: string, files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(root, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    if (text.startsWith("-> ")) fs.symlinkSync(text.slice(3), file)
    else fs.writeFileSync(file, text)
  }
}

/** Every file below a folder with its text. Links are not followed. */
export const contents = (root: string, below = ""): Record<string, string> =>
  Object.fromEntries(
    fs
      .readdirSync(path.join(root, below), { withFileTypes: true })
      .flatMap((found): ReadonlyArray<[string, string]> => {
        const name = path.join(below, found.name)
        if (found.isDirectory()) return Object.entries(contents(root, name))
        return found.isFile() ? [[name, fs.readFileSync(path.join(root, name), "utf8")]] : []
      }),
  )

type Failed = ToolError.ToolError

/** Calls a tool as the host does: arguments are decoded, the handler runs, the result is encoded. */
export const call = <T extends Tool.Any>(
  tool: T,
  params: Tool.ParametersEncoded<T>,
): Effect.Effect<Tool.SuccessEncoded<T>, Failed, Tool.HandlersFor<{ readonly tool: T }>> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.gen(function* () {
      const handler = context.mapUnsafe.get(tool.id) as Tool.Handler<string>
      const decoded = yield* Effect.orDie(
        Schema.decodeUnknownEffect(tool.parametersSchema as Schema.Codec<unknown>)(params, {
          onExcessProperty: "error",
        }),
      )
      const result = yield* handler
        .handler(decoded, { preliminary: () => Effect.void })
        .pipe(Effect.updateContext((caller: Context.Context<never>) => Context.merge(handler.context, caller)))
      const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(tool.successSchema as Schema.Codec<unknown>))
      return (yield* Effect.orDie(encode(result))) as Tool.SuccessEncoded<T>
    }),
  ) as never

/** The failure of a call, encoded as the declared failure of the tool. */
export const failure = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<Failed, A, R> =>
  Effect.map(Effect.flip(self), (error) => {
    if (Schema.is(ToolError.ToolError)(error)) return error
    throw new Error(`not a ToolError: ${String(error)}`)
  })

/** Code and class of the failure of a call; `ok` if there is none. */
export const codeOf = <A, R>(self: Effect.Effect<A, Failed, R>): Effect.Effect<string, never, R> =>
  Effect.match(self, { onFailure: (error) => `${error.code} ${error.class}`, onSuccess: () => "ok" })

/** The contract's word on a result. */
export const saysOf = (contract: Contract.Contract, params: unknown, result: unknown) => ({
  resources: contract.resources?.(params as never, result as never),
  stateChanged: contract.stateChanged?.(params as never, result as never),
})

/** Waits for something that happens elsewhere. */
export const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (isSo() ? Effect.void : Effect.delay(until(isSo), "5 millis")))
