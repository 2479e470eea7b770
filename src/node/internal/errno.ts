/**
 * What the system says of a file, as a failure that a model understands: which kind it is, and the path as it was asked
 * for. Where on the machine the folder lies stays out of it.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as ToolError from "../../tool/ToolError.ts"

/** Whether an error came from the system. */
export const isErrno = (error: unknown): error is NodeJS.ErrnoException & { readonly code: string } =>
  error instanceof Error && "code" in error && typeof error.code === "string"

/** The code of an error of the system; `undefined` for any other. */
export const codeOf = (error: unknown): string | undefined => (isErrno(error) ? error.code : undefined)

/** The failure for an error of the system about `path`. */
export const failureAt = (path: string, code: string): ToolError.ToolError => {
  switch (code) {
    case "ENOENT":
      return ToolError.mistake("ENOENT", `there is no ${path}`)
    case "EISDIR":
      return ToolError.mistake("EISDIR", `${path} is a folder, not a file`)
    case "ENOTDIR":
      return ToolError.mistake("ENOTDIR", `a part of ${path} is a file, not a folder`)
    case "ENAMETOOLONG":
    case "EINVAL":
    case "EILSEQ":
    case "ERR_INVALID_ARG_VALUE":
      return ToolError.mistake("EINVAL", `${path} cannot be the path of a file`)
    case "ELOOP":
      return ToolError.permission("EPERM", `${path} is a symbolic link that is not followed`)
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return ToolError.permission("EPERM", `the system does not permit it for ${path} (${code})`)
    case "ENOSPC":
    case "EDQUOT":
      return ToolError.permission(code, `there is no space left to write ${path}`, {
        suggestedAction: ToolError.stopAndRequestHuman,
      })
    case "EMFILE":
    case "ENFILE":
    case "EBUSY":
    case "EAGAIN":
    case "EIO":
    case "ESTALE":
    case "ETXTBSY":
      return ToolError.transient(code, `${path} cannot be used right now (${code})`)
    default:
      return ToolError.mistake(code, `${path} cannot be used (${code})`)
  }
}

/** Runs a promise over a file. An error of the system becomes a failure; any other is a defect. */
export const attempt = <A>(
  path: string,
  run: (signal: AbortSignal) => Promise<A>,
): Effect.Effect<A, ToolError.ToolError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => {
      if (error instanceof ToolError.ToolError) return error
      return isErrno(error) ? failureAt(path, error.code) : new Unforeseen({ error })
    },
  }).pipe(Effect.catchTag("Unforeseen", ({ error }) => Effect.die(error)))

/** What is no error of the system: a mistake of ours. */
class Unforeseen extends Data.TaggedError("Unforeseen")<{ readonly error: unknown }> {}
