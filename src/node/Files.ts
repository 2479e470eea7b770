/**
 * Tools over the files of one folder: listing, reading, searching, writing and patching. Nothing outside the folder is
 * read or written, whatever path the model gives and wherever symbolic links lead.
 *
 * The tools stand apart from the folder: an agent is made with {@link toolkit} or {@link readOnly}, and {@link layer} says
 * at the run which folder it is.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Contract from "../tool/Contract.ts"
import { ToolError } from "../tool/ToolError.ts"
import * as Change from "./internal/change.ts"
import { covers } from "./internal/glob.ts"
import * as Look from "./internal/look.ts"
import { openRoot } from "./internal/place.ts"

/**
 * The folder, and how much of it a call may see.
 *
 * **Units**: bytes of UTF-8. `maxReadBytes` (64 KiB) is how much text one `read_file` returns, `maxFileBytes` (16 MiB) how
 * large a file may be to be read or written at all. `maxEntries` (500) paths are listed and `maxHits` (100) lines found;
 * `matchTimeout` (2 seconds) is how long a glob or a regular expression of the model may take in one call.
 *
 * @category files
 * @since 0.1.0
 */
export interface Options {
  readonly root: string
  /** Globs of what may not be written; a folder stands for everything in it. `.git` never may. */
  readonly protect?: ReadonlyArray<string>
  /** Globs of what is left out of lists and searches. `.git` and `node_modules`, at any depth, unless given. */
  readonly ignore?: ReadonlyArray<string>
  readonly maxReadBytes?: number
  readonly maxFileBytes?: number
  readonly maxEntries?: number
  readonly maxHits?: number
  readonly matchTimeout?: Duration.Input
}

const Positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const Path = Schema.String.annotate({ description: "A path relative to the root folder" })
const Glob = Schema.String.annotate({ description: "A glob over paths relative to the root, such as src/**/*.ts" })
const LeftOut = Schema.optionalKey(Schema.String.annotate({ description: "What was left out, if anything" }))
const Edits = Schema.Array(Schema.Struct({ old: Schema.String, new: Schema.String })).check(Schema.isMinLength(1))

const Written = Schema.Struct({ path: Schema.String, version: Schema.String, changed: Schema.Boolean })

const reading = { effect: "read", scope: "files:read", timeout: "30 seconds" } as const

const writing = {
  effect: "write",
  scope: "files:write",
  timeout: "30 seconds",
  stateChanged: (_: unknown, { changed }: Change.Written) => changed,
  resources: (_: unknown, { path, version }: Change.Written) => [{ path, version }],
} as const

const ListFiles = Contract.annotate(
  Tool.make("list_files", {
    description:
      "Lists the files below the root folder. With depth, only so many levels of folders are entered (1: none), and " +
      "those that are not entered are listed with a slash at their end.",
    parameters: Schema.Struct({ glob: Schema.optionalKey(Glob), depth: Schema.optionalKey(Positive) }),
    success: Schema.Struct({ paths: Schema.Array(Schema.String), leftOut: LeftOut }),
    failure: ToolError,
  }),
  reading,
)

const ReadFile = Contract.annotate(
  Tool.make("read_file", {
    description: "Reads a text file, or some of its lines. leftOut says which parts of it are not in the answer.",
    parameters: Schema.Struct({
      path: Path,
      firstLine: Schema.optionalKey(Positive),
      lastLine: Schema.optionalKey(Positive),
    }),
    success: Schema.Struct({
      path: Schema.String,
      version: Schema.String,
      text: Schema.String,
      firstLine: Schema.Int,
      lastLine: Schema.Int,
      totalLines: Schema.Int,
      leftOut: LeftOut,
    }),
    failure: ToolError,
  }),
  {
    ...reading,
    resources: (_, { firstLine, lastLine, leftOut, path, version }) => [
      { path, version, ...(leftOut === undefined ? {} : { range: [firstLine, lastLine] as const }) },
    ],
  },
)

const SearchFiles = Contract.annotate(
  Tool.make("search_files", {
    description: "Finds the lines in which a text occurs, or with regexp what a JavaScript regular expression matches.",
    parameters: Schema.Struct({
      query: Schema.String,
      regexp: Schema.optionalKey(Schema.Boolean),
      ignoreCase: Schema.optionalKey(Schema.Boolean),
      glob: Schema.optionalKey(Glob),
    }),
    success: Schema.Struct({
      hits: Schema.Array(Schema.Struct({ path: Schema.String, line: Schema.Int, text: Schema.String })),
      files: Schema.Int.annotate({ description: "How many files were searched" }),
      leftOut: LeftOut,
    }),
    failure: ToolError,
  }),
  reading,
)

const WriteFile = Contract.annotate(
  Tool.make("write_file", {
    description: "Writes a whole file and makes the folders it lies in. A file that was there is replaced.",
    parameters: Schema.Struct({ path: Path, text: Schema.String }),
    success: Written,
    failure: ToolError,
  }),
  { ...writing, idempotency: "natural" },
)

/** The folder of the current run, for finding out what became of a patch. */
const CurrentFolder = Context.Reference<Change.Writable | undefined>("bursar/node/Files/CurrentFolder", {
  defaultValue: () => undefined,
})

const PatchFile = Contract.annotate(
  Tool.make("patch_file", {
    description:
      "Replaces texts in a file. Each old text has to occur exactly once in the file as it is now, or nothing is " +
      "changed. With version, as read_file gave it, nothing is changed if the file is another one by now.",
    parameters: Schema.Struct({ path: Path, edits: Edits, version: Schema.optionalKey(Schema.String) }),
    success: Written,
    failure: ToolError,
  }),
  {
    ...writing,
    idempotency: "none",
    whenUncertain: "tell",
    reconcile: (params) =>
      Effect.flatMap(CurrentFolder, (folder) =>
        folder === undefined ? Effect.succeed({ _tag: "Unknown" } as const) : Change.reconcile(folder, params),
      ),
  },
)

/**
 * The tools that look: `list_files`, `read_file` and `search_files`.
 *
 * @category files
 * @since 0.1.0
 */
export const readOnly = Toolkit.make(ListFiles, ReadFile, SearchFiles)

/**
 * The tools that look and change: those of {@link readOnly}, `write_file` and `patch_file`.
 *
 * - A file is replaced in one step; nobody sees half of it, and a patch applies as a whole or not at all.
 * - A second write of the same text changes nothing. A patch is never applied twice: whether it is in the file already is
 *   looked up there, exactly where the call gave the `version` it was made for.
 * - Permissions are `files:read` and `files:write`.
 *
 * **Fail with** `EPERM` for what leads out of the folder or is protected, `ENOENT`, `EISDIR`, `EINVAL`, `EBINARY` (no text
 * in UTF-8), `EFBIG`, `EPATTERN` (a glob or regular expression that is wrong or takes too long) and `ECONFLICT`, after
 * which the file has to be read again.
 *
 * **Example** (An agent that writes a file and patches it)
 *
 * ```ts
 * import { Agent, Policy, Proposal } from "bursar"
 * import { Files } from "bursar/node"
 * import * as Effect from "effect/Effect"
 * import { mkdtempSync, readFileSync } from "node:fs"
 * import { tmpdir } from "node:os"
 * import { join } from "node:path"
 *
 * const root = mkdtempSync(join(tmpdir(), "bursar-"))
 * const path = "notes/list.txt"
 * const steps = [
 *   Proposal.call("write_file", { path, text: "one\ntwo\n" }),
 *   Proposal.call("patch_file", { path, edits: [{ old: "two", new: "three" }] }),
 * ]
 * const clerk = Agent.make("clerk", {
 *   toolkit: Files.toolkit,
 *   policy: Policy.make(({ turns }) => steps[turns.length] ?? Proposal.finish("done")),
 * })
 * const outcome = await Effect.runPromise(
 *   Agent.run(clerk, "Keep a list", { budget: { steps: 5 } }).pipe(Effect.provide(Files.layer({ root }))),
 * )
 * outcome._tag // => "Completed"
 * readFileSync(join(root, path), "utf8") // => "one\nthree\n"
 * ```
 *
 * @category files
 * @since 0.1.0
 */
export const toolkit = Toolkit.make(ListFiles, ReadFile, SearchFiles, WriteFile, PatchFile)

const always = ["**/.git"]
const defaultIgnored = ["**/.git", "**/node_modules"]

/**
 * What the tools of {@link toolkit} and {@link readOnly} do, in the folder `root`. Provide it to the run of the agent.
 *
 * **Fails with** a fatal `ENOROOT` when there is no such folder.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Tool.HandlersFor<(typeof toolkit)["tools"]>, ToolError> =>
  Layer.unwrap(
    Effect.map(openRoot(options.root), (root) => {
      const { maxFileBytes = 16 * 1024 * 1024 } = options
      const limits: Look.Limits = {
        root,
        maxFileBytes,
        ignored: covers(options.ignore ?? defaultIgnored),
        maxReadBytes: options.maxReadBytes ?? 64 * 1024,
        maxEntries: options.maxEntries ?? 500,
        maxHits: options.maxHits ?? 100,
        matchMillis: Duration.toMillis(Duration.fromInputUnsafe(options.matchTimeout ?? "2 seconds")),
      }
      const folder: Change.Writable = {
        root,
        maxFileBytes,
        isProtected: covers([...always, ...(options.protect ?? [])]),
      }
      const handlers = toolkit.toLayer({
        list_files: (params) => Look.list(limits, params),
        read_file: (params) => Look.read(limits, params),
        search_files: (params) => Look.search(limits, params),
        write_file: (params) => Change.write(folder, params),
        patch_file: (params) => Change.patch(folder, params),
      })
      return Layer.merge(handlers, Layer.succeed(CurrentFolder)(folder))
    }),
  )
