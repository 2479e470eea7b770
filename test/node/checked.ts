/**
 * What verifiers say, and folders for them to look at.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import type { Verifier } from "../../src/index.ts"
import { Check } from "../../src/node/index.ts"
import { fill, folder } from "./support.ts"

/** What a verifier says. It does not look at the answer, and pays for nothing. */
export const says = <E>(verifier: Verifier.Verifier<unknown, E>) => verifier.check({} as never, undefined as never)

export const worldOf = (verifier: Verifier.Verifier<unknown>) => verifier.world!({} as never)

export const rulesOf = (verification: Verifier.Verification) =>
  Object.fromEntries(verification.rules.map(({ detail, name, passed }) => [name, passed ? "passed" : detail]))

/** A folder with files, and what it was. */
export const tree = (
  files: Readonly<Record<string, string>>,
  options: { readonly ignore?: ReadonlyArray<string> } = {},
) =>
  Effect.gen(function* () {
    const root = yield* folder
    fill(root, files)
    return { root, baseline: yield* Check.baseline(root, options) }
  })

export const put = (root: string, name: string, text: string): void => fs.writeFileSync(path.join(root, name), text)

export const numbered = (count: number, word = "line"): string =>
  Array.from({ length: count }, (_, index) => `${word} ${index}\n`).join("")
