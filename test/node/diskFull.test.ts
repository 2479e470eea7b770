import { assert, describe, it } from "@effect/vitest"
import { vi } from "vitest"
import type * as nodeFs from "node:fs"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as os from "node:os"
import * as path from "node:path"

const fault = { next: false }
vi.mock("node:fs", async (original) => {
  const real = await original<typeof nodeFs>()
  return {
    ...real,
    writeSync: (descriptor: number, bytes: Buffer, from = 0) => {
      if (!fault.next) return real.writeSync(descriptor, bytes, from)
      // The disk takes half of it, and then is full.
      fault.next = false
      real.writeSync(descriptor, bytes, from, Math.floor((bytes.length - from) / 2))
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" })
    },
  }
})

const { FileJournal } = await import("../../src/node/index.ts")
const fs = await import("node:fs")

describe("a file journal whose disk was full for a moment", () => {
  it.effect("says no flush worked that left out what was recorded, and stays readable", () =>
    Effect.gen(function* () {
      const directory = fs.mkdtempSync(path.join(os.tmpdir(), "bursar-review-"))
      const ended = { _tag: "RunResumed", agent: "a", epoch: 1, after: "crash", bursar: "0" } as const
      const second = yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* FileJournal.make({ directory }).open("run")
          log.record(ended)
          fault.next = true
          assert.isTrue(Exit.isFailure(yield* Effect.exit(log.flush)))
          log.record({ ...ended, epoch: 2 })
          return yield* Effect.exit(log.flush)
        }),
      ).pipe(
        Effect.exit,
        Effect.map((exit) => (Exit.isSuccess(exit) ? exit.value : exit)),
      )
      const read = yield* Effect.exit(FileJournal.read({ directory, run: "run" }))
      const seqs = Exit.isSuccess(read) ? read.value.map(({ seq }) => seq) : String(read.cause)
      // Either the log stays dead, or the second flush brings all.
      assert.deepStrictEqual(
        { flushed: Exit.isSuccess(second), seqs },
        Exit.isSuccess(second) ? { flushed: true, seqs: [0, 1] } : { flushed: false, seqs: [] },
      )
    }),
  )
})
