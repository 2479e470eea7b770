/**
 * A tree from its journal: after any life, and at any moment of it, the restored tree is the one that was, and goes on as
 * that one does. A journal that was changed is found out.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isDeepStrictEqual } from "node:util"
import type { Entry } from "../../src/budget/Entry.ts"
import { type Command, Life } from "./commands.ts"
import { type AnyLife, begin } from "./laws.ts"
import { broken, checkNow, endAll, extra, oneMore, restored, telltale, together, tryRestore } from "./restoring.ts"

class Broken extends Schema.TaggedError<Broken>()("Broken", { cause: Schema.Unknown }) {
  override get message(): string {
    return String(this.cause)
  }
}

/** Lives many lives of one seed; what one of them breaks fails the test. */
const anyLife = (runs: number, lived: (life: AnyLife) => void): Effect.Effect<void> =>
  Effect.suspend(() => {
    const seed = Math.floor(Math.random() * 2 ** 32)
    const holds = (life: AnyLife) =>
      Effect.try({ try: () => (lived(life), true), catch: (cause) => new Broken({ cause }) })
    return Effect.map(Arbitrary.checkEffect(Life, holds, { runs, size: 100, seed }), (result) => {
      const failure = Arbitrary.formatCheckFailure(result)
      if (failure !== undefined) assert.fail(`seed ${seed}: ${failure}`)
    })
  })

/** A number of the life that is as good as drawn. */
const drawn = (life: AnyLife): number => life.commands.reduce((sum, { account, hold }) => sum * 31 + account + hold, 7)

const pick = <A>(among: ReadonlyArray<A>, number: number): A | undefined => among[Math.abs(number | 0) % among.length]

/** The journal of a life that has come to its end. */
const journalOf = (life: AnyLife): ReadonlyArray<Entry> => {
  const tree = begin(life)
  life.commands.forEach((command, number) => extra(tree, command, number))
  endAll(tree)
  return tree.entries
}

describe("in any life of a tree", () => {
  it.effect("each moment between two operations can be restored, also from JSON", () =>
    anyLife(150, (life) => {
      const tree = begin(life)
      life.commands.forEach((command, number) => {
        extra(tree, command, number)
        if ((number + command.hold) % 5 === 0) checkNow(tree)
      })
      checkNow(tree)
      endAll(tree)
      checkNow(tree)
    }),
  )

  it.effect("the restored tree answers what comes next, and what came before, as the one that was", () =>
    anyLife(300, (life) => {
      const world = together(begin(life))
      const cut = Math.abs(drawn(life) | 0) % life.commands.length
      const delivered: Array<() => unknown> = []
      const again = (command: Command) => delivered[command.account % Math.max(1, delivered.length)]
      life.commands.forEach((command, number) => {
        if (number === cut) world.split()
        let late: (() => unknown) | undefined
        world.each((tree) => extra(tree, command, number, (repeat) => (late = repeat)))
        if (late !== undefined) delivered.push(late)
        const repeated = again(command)
        if (repeated !== undefined) world.each(repeated)
      })
      world.each(endAll)
      world.check()
    }),
  )

  it.effect("a journal that ends in the middle of an operation is completed, and can be restored again", () =>
    anyLife(150, (life) => {
      const entries = journalOf(life)
      const cut = 1 + (Math.abs(drawn(life) | 0) % entries.length)
      const tree = restored(entries.slice(0, cut))
      const again = restored(tree.entries)
      assert.deepStrictEqual(again.entries, tree.entries)
      assert.deepStrictEqual(again.ledger.accounts, tree.ledger.accounts)
      if (!entries.some(({ _tag }) => _tag === "Waited"))
        assert.deepStrictEqual(tree.entries, entries.slice(0, tree.entries.length))
    }),
  )
})

describe("in the journal of any life", () => {
  const found = (changed: ReadonlyArray<Entry>, at: number, what: string): void => {
    const result = tryRestore(changed)
    if (Result.isSuccess(result)) assert.fail(`${what} of entry ${at} was not found`)
    assert.isAtLeast(result.failure.index, at, result.failure.message)
  }

  /** A bill that is what was assumed leaves all amounts as they are. */
  const confirms = (entry: Entry): boolean => entry._tag === "Adjusted" && isDeepStrictEqual(entry.held, entry.actual)

  it.effect("one more of an amount is found", () =>
    anyLife(200, (life) => {
      const entries = journalOf(life)
      const at = pick(telltale(entries), drawn(life))
      if (at === undefined) return
      found(
        broken(entries, at, (entry) => [oneMore(entry)]),
        at,
        "one more",
      )
    }),
  )

  it.effect("an entry that is gone is found", () =>
    anyLife(200, (life) => {
      const entries = journalOf(life)
      // The last one that changed the books may as well not have reached the journal.
      const last = entries.findLastIndex(({ _tag }) => _tag !== "Refused")
      const at = pick(
        telltale(entries).filter((place) => place < last && !confirms(entries[place]!)),
        drawn(life),
      )
      if (at === undefined) return
      found(
        broken(entries, at, () => []),
        at,
        "the loss",
      )
    }),
  )

  it.effect("an entry that is there twice is found", () =>
    anyLife(200, (life) => {
      const entries = journalOf(life)
      const at = pick(telltale(entries), drawn(life))
      if (at === undefined) return
      found(
        broken(entries, at, (entry) => [entry, entry]),
        at,
        "the double",
      )
    }),
  )
})
