/**
 * Random lives, in groups of a hundred under a seed of their own. `BURSAR_DEEP=1` lives 50,000 of them and keeps the seed
 * of each group that fails in `seeds.json`; what is kept there is lived again every time.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { readFileSync, writeFileSync } from "node:fs"
import { Life } from "./commands.ts"
import { live, type Marks } from "./laws.ts"

const group = 100
const deep = process.env.BURSAR_DEEP === "1"
const groups = (deep ? 50_000 : 1_000) / group
const file = new URL("seeds.json", import.meta.url)

const readSeeds = (): ReadonlyArray<number> =>
  Schema.decodeUnknownSync(Schema.Array(Schema.Number))(JSON.parse(readFileSync(file, "utf8")))

const keep = (seed: number): void => {
  const seeds = [...new Set([...readSeeds(), seed])]
  writeFileSync(file, `${JSON.stringify(seeds)}\n`)
}

class LawBroken extends Schema.TaggedError<LawBroken>()("LawBroken", { cause: Schema.Unknown }) {
  override get message(): string {
    return String(this.cause)
  }
}

/** Lives the group of a seed; the law that was broken and in which life, or nothing. */
const lived = (seed: number, marks?: Marks): Effect.Effect<string | undefined> => {
  const lawful = (life: Parameters<typeof live>[0]) =>
    Effect.try({ try: () => (live(life, marks), true), catch: (cause) => new LawBroken({ cause }) })
  return Effect.map(Arbitrary.checkEffect(Life, lawful, { runs: group, size: 100, seed }), (result) => {
    const failure = Arbitrary.formatCheckFailure(result)
    return failure === undefined ? undefined : `seed ${seed} (to be kept in seeds.json): ${failure}`
  })
}

describe("in any life of a tree", () => {
  const marks: Marks = new Map()

  it.effect(
    "nothing is lost, gained or overspent, what is refused changes nothing, nor what is delivered twice",
    () =>
      Effect.gen(function* () {
        for (let n = 0; n < groups; n++) {
          const seed = Math.floor(Math.random() * 2 ** 32)
          const failure = yield* lived(seed, marks)
          if (failure !== undefined && deep) keep(seed)
          if (failure !== undefined) assert.fail(failure)
        }
      }),
    deep ? 7_200_000 : 60_000,
  )

  it.effect.each(readSeeds())("as in that of seed %i", (seed) =>
    Effect.map(lived(seed), (failure) => assert.strictEqual(failure, undefined)),
  )

  afterAll(() => {
    if (process.env.MARKS) console.log(marks)
    if (marks.size === 0) return
    const operations = ["hold", "carve", "carveAll", "settle", "void", "assume", "close", "move", "amend", "pause"]
    for (const operation of [...operations, "resume", "extendHold", "adjust", "topUp", "reclaim"])
      for (const outcome of ["accepted", "refused"])
        assert.isAbove(marks.get(`${operation} ${outcome}`) ?? 0, 5, `${operation} ${outcome}`)
    for (const life of ["an over-run", "debt", "grandchildren", "debt paid", "an adjustment after a close"])
      assert.isAbove(marks.get(`life with ${life}`) ?? 0, 0, life)
  })
})
