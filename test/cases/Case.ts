/**
 * Scripted cases as they stand in a file, one JSON object a line. Money is in millionths of a dollar, times in ms.
 */
import * as Schema from "effect/Schema"

const count = Schema.optionalKey(Schema.Number)
const json = Schema.Record(Schema.String, Schema.Unknown)

const Axes = Schema.Struct({
  steps: count,
  tool_calls: count,
  in: count,
  out: count,
  uusd: count,
  wall_ms: count,
  ticks: count,
  tool_retries: Schema.optionalKey(Schema.Record(Schema.String, Schema.Number)),
})

export type Axes = (typeof Axes)["Type"]

const Usage = Schema.Struct({
  in: Schema.Number,
  out: Schema.Number,
  cached: count,
  written: count,
  reasoning: count,
  style: Schema.optionalKey(Schema.Literals(["inclusive", "exclusive"])),
})

export type Usage = (typeof Usage)["Type"]

const Call = Schema.Struct({
  id: Schema.String,
  tool: Schema.String,
  args: Schema.optionalKey(json),
  bad_args: Schema.optionalKey(Schema.String),
  ref: Schema.optionalKey(Schema.String),
})

const Turn = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  calls: Schema.optionalKey(Schema.Array(Call)),
  ms: count,
  usage: Schema.optionalKey(Schema.NullOr(Usage)),
  est_in: count,
  max_out: count,
  frames: Schema.optionalKey(Schema.Array(Usage)),
  parts: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  finish: Schema.optionalKey(Schema.String),
  fault: Schema.optionalKey(Schema.String),
  retry_after_ms: count,
})

export type Turn = (typeof Turn)["Type"]

const Tool = Schema.Struct({
  name: Schema.String,
  behave: Schema.Array(Schema.String),
  ms: count,
  timeout_ms: count,
  effect: Schema.optionalKey(Schema.Boolean),
  idem: Schema.optionalKey(Schema.Literals(["call", "args", "none"])),
  uusd: count,
  results: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  result_tokens: count,
  volatile: Schema.optionalKey(Schema.Array(Schema.String)),
})

export type Tool = (typeof Tool)["Type"]

const Reserves = Schema.Struct({
  output: Schema.optionalKey(Axes),
  verify: Schema.optionalKey(Axes),
  retry: Schema.optionalKey(Axes),
})

export type Reserves = (typeof Reserves)["Type"]

const Child = Schema.Struct({
  ask: Schema.Union([Schema.Literal("even"), Axes]),
  min: Schema.optionalKey(Axes),
  reserves: Schema.optionalKey(Reserves),
  turns: Schema.Array(Turn),
  wrap_up: Schema.optionalKey(Turn),
  tools: Schema.optionalKey(Schema.Array(Tool)),
})

export type Child = (typeof Child)["Type"]

const AgentExpectation = Schema.Struct({
  stop: Schema.optionalKey(Schema.String),
  result: Schema.optionalKey(Schema.String),
  steps: count,
  tool_calls: count,
  in: count,
  out: count,
  uusd: count,
  overdrawn: count,
})

const Expectation = Schema.Struct({
  stop: Schema.String,
  result: Schema.String,
  steps: Schema.Number,
  tool_calls: Schema.Number,
  in: Schema.Number,
  out: Schema.Number,
  uusd_max: count,
  side_effects: count,
  kept: Schema.optionalKey(Schema.Array(Schema.String)),
  refused: Schema.optionalKey(Schema.Array(Schema.String)),
  invalid: Schema.optionalKey(Schema.Array(Schema.String)),
  replayed: Schema.optionalKey(Schema.Array(Schema.String)),
  skipped: Schema.optionalKey(Schema.Array(Schema.String)),
  agents: Schema.optionalKey(Schema.Record(Schema.String, AgentExpectation)),
  requests: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        n: Schema.Number,
        tools: Schema.optionalKey(Schema.Boolean),
        max_out: count,
        options: Schema.optionalKey(json),
      }),
    ),
  ),
  wall_ms_max: count,
  ticks: count,
  trace: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        event: Schema.String,
        axis: Schema.optionalKey(Schema.String),
        from: count,
        to: count,
        count: Schema.Number,
      }),
    ),
  ),
})

export type Expectation = (typeof Expectation)["Type"]

export const Case = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  needs: Schema.optionalKey(Schema.Array(Schema.String)),
  prices: Schema.Record(
    Schema.String,
    Schema.NullOr(Schema.Struct({ in: Schema.Number, cached: count, written: count, out: Schema.Number })),
  ),
  model: Schema.String,
  fallback: Schema.optionalKey(Schema.Array(Schema.String)),
  options: Schema.optionalKey(Schema.Record(Schema.String, json)),
  budget: Axes,
  reserves: Schema.optionalKey(Reserves),
  limits: Schema.optionalKey(
    Schema.Struct({
      max_out: count,
      min_out: count,
      model_retries: count,
      no_progress: Schema.optionalKey(Schema.Struct({ repeat: Schema.Number, period: Schema.Number })),
    }),
  ),
  turns: Schema.Array(Turn),
  wrap_up: Schema.optionalKey(Turn),
  tools: Schema.optionalKey(Schema.Array(Tool)),
  children: Schema.optionalKey(Schema.Record(Schema.String, Child)),
  verifier: Schema.optionalKey(
    Schema.Struct({
      kind: Schema.String,
      verdicts: Schema.Array(Schema.String),
      usage: Schema.optionalKey(Usage),
      est_in: count,
      max_out: count,
      ms: count,
    }),
  ),
  cancel_at: Schema.optionalKey(Schema.Struct({ agent: Schema.String, ms: Schema.Number })),
  amend: Schema.optionalKey(Schema.Struct({ after_step: Schema.Number, budget: Axes })),
  crash_at: Schema.optionalKey(Schema.Struct({ during: Schema.String, after_effect: Schema.Boolean })),
  expect: Expectation,
})

export type Case = (typeof Case)["Type"]

/** What this version can do of what a case may need. */
const supported = new Set([
  "spawn",
  "verify",
  "cancel",
  "amend",
  "clamp",
  "ledger",
  "tool retries",
  "crash",
  "stream",
  "fallback",
  "options",
])

/** What a case needs and this version does not have: declared in `needs`, or used without saying so. */
export const missingNeeds = (one: Case): ReadonlyArray<string> => {
  const everyone = [one, ...Object.values(one.children ?? {})]
  const turns = everyone.flatMap((agent) => [...agent.turns, ...(agent.wrap_up === undefined ? [] : [agent.wrap_up])])
  const tools = everyone.flatMap((agent) => agent.tools ?? [])
  const retried = (tool: Tool) =>
    (one.budget.tool_retries?.[tool.name] ?? 0) > 0 &&
    tool.behave.some((how) => !["ok", "big", "permanent"].includes(how))
  const repeated = turns.some((turn) => new Set(turn.calls?.map((call) => call.id)).size !== (turn.calls ?? []).length)
  const used = [
    ...(turns.some((turn) => turn.frames !== undefined || turn.fault === "truncated_stream") ? ["stream"] : []),
    ...(one.fallback === undefined || one.fallback.length === 0 ? [] : ["fallback"]),
    ...(one.options === undefined ? [] : ["options"]),
    ...(one.crash_at === undefined ? [] : ["crash"]),
    ...(tools.some(retried) ? ["tool retries"] : []),
    ...(repeated || one.expect.replayed !== undefined ? ["ledger"] : []),
  ]
  return [...new Set([...(one.needs ?? []), ...used])].filter((need) => !supported.has(need))
}
