/**
 * The defects that the exploration must find: each is the record of operations with one of them replaced, by a wrapper
 * around the shipped one or by a wrong one of its own.
 */
import { operations, type Operations } from "../../src/budget/Operations.ts"
import type { Configuration } from "./Model.ts"
import { children } from "./defectsOfChildren.ts"
import { holds } from "./defectsOfHolds.ts"
import { lives } from "./defectsOfLives.ts"

export interface Defect {
  readonly name: string
  /** The check that finds it. */
  readonly law: string
  /** Where it is looked for. */
  readonly world: Configuration
  readonly wrong: Partial<Operations>
}

export const defects: ReadonlyArray<Defect> = [...children, ...holds, ...lives]

/** The record of operations with a defect in it. */
export const withDefect = ({ wrong }: Defect): Operations => ({ ...operations, ...wrong })
