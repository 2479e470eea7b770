/**
 * What a user may ask a job for on the command line, and what is said of it where it cannot be used.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Budget, Price } from "../../src/index.ts"

/** An option that cannot be used; names it, its value if it has one, and the remedy. */
export class WrongOption extends Schema.TaggedError<WrongOption>()("WrongOption", {
  option: Schema.String,
  value: Schema.optionalKey(Schema.String),
  remedy: Schema.String,
}) {
  override get message(): string {
    const is = this.value === undefined ? "" : ` is ${JSON.stringify(this.value)}`
    return `--${this.option}${is}: ${this.remedy}`
  }
}

export const wrong = (option: string, value: string | undefined, remedy: string): Effect.Effect<never, WrongOption> =>
  Effect.fail(new WrongOption({ option, remedy, ...(value === undefined ? {} : { value }) }))

/** The price of a model, such as "0.25/2.00". */
export const readPrice = (text: string | undefined): Effect.Effect<Price.Price | undefined, WrongOption> => {
  if (text === undefined) return Effect.succeed(undefined)
  const [input = "", output = ""] = text.split("/")
  const price = Price.perMillion({ input, output })
  const remedy = `give US dollars per million tokens of input and output, such as "0.25/2.00"`
  return Result.isSuccess(price) ? Effect.succeed(price.success) : wrong("price", text, remedy)
}

/** The flag of an option: `wallClock` is given as `--wall-clock`. */
export const flagOf = (name: string): string => name.replaceAll(/[A-Z]/g, (one) => `-${one.toLowerCase()}`)

/** One sentence for the user, in the words of the command line. */
export const sentenceOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (!(error instanceof Budget.BudgetError) || error.reason._tag !== "InvalidAmount") return error.message
  const { field, value, remedy } = error.reason
  return `--${flagOf(field)} is ${value}: ${remedy}`
}
