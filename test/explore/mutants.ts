/**
 * The checks checked: each seeded defect must be found by the check that is meant for it. `npm run mutants`; a line for
 * each, a closing count, exit 1 when one was missed.
 */
import { type Defect, defects, withDefect } from "./defects.ts"
import { explore } from "./Search.ts"

/** How a defect was found: the check and the number of moves, or nothing. */
const caught = (defect: Defect): boolean => {
  const { found, states } = explore(defect.world, withDefect(defect))
  if (found === undefined) {
    console.log(`missed  ${defect.name} (in ${states} states of ${defect.world.name})`)
    return false
  }
  const other = found.law === defect.law ? "" : `, not by ${defect.law}`
  console.log(`caught  ${defect.name}  by ${found.law} after ${found.moves.length} moves${other}`)
  if (process.argv.includes("--moves")) console.log([found.detail, ...found.moves].map((one) => `  ${one}`).join("\n"))
  return found.law === defect.law
}

const passed = defects.filter(caught).length
console.log(`${passed} passed, ${defects.length - passed} failed`)
process.exitCode = passed === defects.length ? 0 : 1
