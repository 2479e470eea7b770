import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Policy, Proposal, Verifier } from "../../src/index.ts"
import { Check, Command, Files } from "../../src/node/index.ts"
import { tree } from "./checked.ts"
import { contents } from "./support.ts"

const program = "export const add = (a, b) => a - b\n"
const test = `
import { add } from "./add.mjs"
if (add(1, 2) !== 3) throw new Error("1 + 2 is " + add(1, 2))
`

/** Tries to bend the test, then a wrong repair, then the right one; finishes after each. */
const steps = [
  Proposal.call("read_file", { path: "add.mjs" }),
  Proposal.call("write_file", { path: "test.mjs", text: "" }),
  Proposal.call("run_command", { command: process.execPath, args: ["test.mjs"] }),
  Proposal.finish("nothing to do"),
  Proposal.call("patch_file", { path: "add.mjs", edits: [{ old: "a - b", new: "a * b" }] }),
  Proposal.finish("repaired"),
  Proposal.call("patch_file", { path: "add.mjs", edits: [{ old: "a * b", new: "a + b" }] }),
  Proposal.finish("repaired for good"),
]

it.live("an agent repairs a program until its test passes", () =>
  Effect.gen(function* () {
    const { baseline, root } = yield* tree({ "add.mjs": program, "test.mjs": test })
    const agent = Agent.make("repairer", {
      toolkit: Toolkit.merge(Files.toolkit, Command.toolkit),
      policy: Policy.make(({ turns }) => steps[turns.length]!),
      verify: Verifier.all(
        Check.files({ root, baseline, protectedGlobs: ["test.mjs"], maxChangedLines: 2, mustChange: ["add.mjs"] }),
        Check.command({ command: process.execPath, args: ["test.mjs"], cwd: root, timeout: "50 seconds" }),
      ),
    })
    const layers = Layer.merge(
      Files.layer({ root, protect: ["test.mjs"] }),
      Command.layer({ root, allow: [process.execPath] }),
    )
    const outcome = yield* Agent.run(agent, "Repair it", { budget: { steps: 20 } }).pipe(Effect.provide(layers))
    assert.strictEqual(outcome._tag, "Completed", JSON.stringify(outcome))
    assert.strictEqual(outcome._tag === "Completed" && outcome.answer, "repaired for good")
    assert.deepStrictEqual(contents(root), { "add.mjs": program.replace("-", "+"), "test.mjs": test })
    assert.include(yield* Check.diff({ root, baseline }), "+export const add = (a, b) => a + b")
  }),
)
