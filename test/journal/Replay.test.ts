import { assert, describe, it } from "@effect/vitest"
import * as Content from "../../src/event/Content.ts"
import { imbalances } from "../../src/budget/Statement.ts"
import * as Replay from "../../src/journal/Replay.ts"
import { changed, everything, placeOf, renumbered } from "./Written.ts"

const sound = everything()

describe("a replay", () => {
  it("rebuilds every state and the books, and finds them as they were recorded", () => {
    const replay = Replay.replay(sound)
    assert.deepStrictEqual(
      replay.agents.map(({ agent, name, equal }) => [agent, name, equal]),
      [
        ["lead", "lead", true],
        ["lead/scout-1", "scout", true],
        ["lead/scout-2", "scout", true],
      ],
    )
    for (const { digest, recorded } of replay.agents) assert.strictEqual(digest, recorded)
    assert.deepStrictEqual([replay.equal, replay.contradiction, replay.run], [true, undefined, "run-1"])
    assert.deepStrictEqual(imbalances(replay.accounts), [])
    assert.deepStrictEqual(
      replay.accounts.map(({ account, own, overran }) => [account, own.steps, own.money, overran]),
      [
        ["lead", 5, 301_000, true],
        ["lead/scout-1", 2, 100_000, false],
        ["lead/scout-2", 4, 1_200_000, true],
      ],
    )
  })

  it("rebuilds what there is of a run that has not ended, wherever it was cut off", () => {
    for (let length = 0; length < sound.length; length++) {
      const replay = Replay.replay(sound.slice(0, length))
      assert.isTrue(replay.equal, `${length} events`)
    }
    const [lead] = Replay.replay(sound.slice(0, 40)).agents
    assert.isUndefined(lead!.recorded)
    assert.match(lead!.digest, /^sha256:/)
  })

  it("says which state is another one", () => {
    const index = placeOf(sound, "CallEnded", ({ agent }) => agent === "lead/scout-1")
    const replay = Replay.replay(changed<"CallEnded">(sound, index, { result: Content.fromJson("another result") }))
    assert.deepStrictEqual(
      replay.agents.map(({ equal }) => equal),
      [true, false, true],
    )
    assert.isFalse(replay.equal)
    assert.isAbove(replay.accounts.length, 0)
  })

  it("says where the books contradict the journal, and has no accounts then", () => {
    const index = placeOf(sound, "Settled")
    const replay = Replay.replay(renumbered(sound.toSpliced(index, 1)))
    assert.isFalse(replay.equal)
    assert.deepStrictEqual(replay.accounts, [])
    assert.match(String(replay.contradiction), /^Closed of lead: the journal says .*, the books say .*pending holds/)
  })

  it("has nothing to say about nothing", () => {
    assert.deepStrictEqual(Replay.replay([]), {
      run: undefined,
      agents: [],
      accounts: [],
      contradiction: undefined,
      equal: true,
    })
  })
})
