/**
 * What a policy proposes. The host checks, executes, records and decides.
 */
import * as Result from "effect/Result"

/**
 * One call that a policy proposes: the tool, its arguments, and the id the provider gave it, if any.
 *
 * @category proposals
 * @since 0.1.0
 */
export interface ProposedCall {
  readonly tool: string
  readonly params: unknown
  readonly id?: string
}

/**
 * Call tools, finish with an answer, or say that nothing usable came out.
 *
 * @category proposals
 * @since 0.1.0
 */
export type Proposal =
  | { readonly _tag: "Call"; readonly calls: ReadonlyArray<ProposedCall>; readonly text?: string }
  | { readonly _tag: "Finish"; readonly answer: unknown; readonly text?: string }
  | { readonly _tag: "Invalid"; readonly why: string; readonly text?: string }

/**
 * Proposes to call one tool.
 *
 * @category proposals
 * @since 0.1.0
 */
export const call = (tool: string, params: unknown): Proposal => ({ _tag: "Call", calls: [{ tool, params }] })

/**
 * Proposes several calls at once; they are admitted in order.
 *
 * @category proposals
 * @since 0.1.0
 */
export const callAll = (calls: ReadonlyArray<ProposedCall>): Proposal => ({ _tag: "Call", calls })

/**
 * Proposes an answer; the host decodes and verifies it before it counts.
 *
 * @category proposals
 * @since 0.1.0
 */
export const finish = (answer: unknown): Proposal => ({ _tag: "Finish", answer })

/**
 * Says that there is nothing to propose, and why. A few of these in a row end the run.
 *
 * @category proposals
 * @since 0.1.0
 */
export const invalid = (why: string): Proposal => ({ _tag: "Invalid", why })

/** The proposal, if it can be written down: what is no JSON could be neither recorded nor shown again. */
export const recordable = (proposal: Proposal): Proposal => {
  const written = Result.try(() => JSON.stringify(proposal))
  return Result.isSuccess(written) ? proposal : invalid("The proposal could not be written down as JSON.")
}
