/**
 * How a scripted server may misbehave while it speaks the protocol: its tempers, and what each does to a reply.
 *
 * Their law: what a temper makes the server *state* never changes what it *bills*; those that change the bill
 * (`ignores-cap`, `eats-cap`, `over-bills`) change it in the ledger too.
 */
import * as Schema from "effect/Schema"

/**
 * A way to deviate from what was asked.
 *
 * | temper | the server |
 * | --- | --- |
 * | `obeys` | never exceeds the cap, also where a turn states more, and calls no tool that is not offered |
 * | `ignores-cap` | sends and bills more than the cap: a shorter text is lengthened with spaces |
 * | `ignores-tools` | calls a tool though none is offered: the last one called before, else `withdrawn` |
 * | `eats-cap` | spends the whole cap on reasoning: billed, incomplete, nothing said |
 * | `omits-usage` | leaves usage out |
 * | `zero-usage` | states zeros |
 * | `under-reports` | states half of every number, rounded down |
 * | `over-bills` | bills and states half as much again, rounded up, and more output than the cap where there is one |
 * | `repeats-ids` | numbers the calls of every reply from `call_0` |
 * | `empties-ids` | gives every call the id `""` |
 * | `usage-on-every-chunk` | states a running total on every chunk of a stream |
 * | `null-content` | sends `null` in place of the text (of the message's content in Chat Completions) |
 * | `other-model` | names a dated model in place of the one asked for |
 * | `other-tier` | serves another service tier than the one asked for |
 *
 * @category tempers
 * @since 0.1.0
 */
export const Temper = Schema.Literals([
  "obeys",
  "ignores-cap",
  "ignores-tools",
  "eats-cap",
  "omits-usage",
  "zero-usage",
  "under-reports",
  "over-bills",
  "repeats-ids",
  "empties-ids",
  "usage-on-every-chunk",
  "null-content",
  "other-model",
  "other-tier",
])

/** @since 0.1.0 */
export type Temper = typeof Temper.Type

/** One temper or several at once. */
export const Tempers = Schema.Union([Temper, Schema.Array(Temper)])

/** @since 0.1.0 */
export type Tempers = typeof Tempers.Type

/** The tempers of one reply: those of its turn replace those of the server. */
export const tempersOf = (turn: Tempers | undefined, server: Tempers | undefined): ReadonlySet<Temper> => {
  const given = turn ?? server ?? []
  return new Set(typeof given === "string" ? [given] : given)
}
