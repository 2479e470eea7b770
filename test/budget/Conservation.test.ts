import { afterAll, assert, describe, it } from "@effect/vitest"
import { Life } from "./commands.ts"
import { live, type Marks } from "./laws.ts"

describe("in any life of a tree", () => {
  const marks: Marks = new Map()

  it.prop(
    "nothing is lost, gained or overspent, and what is refused changes nothing",
    { life: Life },
    ({ life }) => live(life, marks),
    { arbitrary: { runs: 600, size: 100 }, timeout: 30_000 },
  )

  afterAll(() => {
    if (process.env.MARKS) console.log(marks)
    const operations = ["hold", "carve", "carveAll", "settle", "void", "assume", "close", "move", "amend", "pause"]
    for (const operation of [...operations, "resume"])
      for (const outcome of ["accepted", "refused"])
        assert.isAbove(marks.get(`${operation} ${outcome}`) ?? 0, 5, `${operation} ${outcome}`)
    for (const life of ["an over-run", "debt", "grandchildren", "debt paid"])
      assert.isAbove(marks.get(`life with ${life}`) ?? 0, 0, life)
  })
})
