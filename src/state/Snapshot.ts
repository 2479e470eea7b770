/**
 * A state for people and files: small, whatever went through the session.
 */
import { digest } from "../event/Content.ts"
import type { AgentState } from "./State.ts"

/**
 * The state as JSON that stays small: whatever is larger than `largerThan` bytes stands there by hash and size, with how
 * it begins.
 *
 * @category state
 * @since 0.1.0
 */
export const snapshot = (state: AgentState, largerThan = 1024): unknown => {
  const small = (value: unknown): unknown => {
    const text = JSON.stringify(value)
    if (text === undefined || Buffer.byteLength(text) <= largerThan) return value
    return { hash: digest(text), bytes: Buffer.byteLength(text), begins: text.slice(0, 200) }
  }
  return {
    task: { ...state.task, text: small(state.task.text), subgoals: state.task.subgoals.map(small) },
    world: { version: state.world.version, resources: Object.fromEntries(state.world.resources) },
    session: {
      turns: state.session.turns.map((turn) => ({
        ...turn,
        text: small(turn.text),
        answer: small(turn.answer),
        feedback: turn.feedback.map(small),
        observations: turn.observations.map((one) => ({ ...one, params: small(one.params), data: small(one.data) })),
      })),
    },
    control: {
      ...state.control,
      retries: Object.fromEntries(state.control.retries),
      waits: [...state.control.waits.values()].map((wait) => ({ ...wait, params: small(wait.params) })),
      started: [...state.control.started.keys()],
    },
  }
}
