/**
 * A piece of content (a task, arguments, a result, an answer) as events carry it: its hash and size always, its text
 * only while the process holds it. A journal line keeps hash and size; the text goes to the side store.
 */
import { hash } from "node:crypto"
import * as Schema from "effect/Schema"

/**
 * Content with its text, as it travels in memory. The text is absent where it was dropped.
 *
 * **Units**: `bytes` of UTF-8.
 *
 * @category content
 * @since 0.1.0
 */
export const Content = Schema.Struct({
  hash: Schema.String,
  bytes: Schema.Finite,
  text: Schema.optionalKey(Schema.String),
})

/** @since 0.1.0 */
export type Content = (typeof Content)["Type"]

/** A digest that is the same for the same text, in any process. */
export const digest = (text: string): string => `sha256:${hash("sha256", text)}`

/** Content from a text. */
export const fromText = (text: string): Content => ({ hash: digest(text), bytes: Buffer.byteLength(text), text })

/** Content from any JSON value. */
export const fromJson = (value: unknown): Content => fromText(JSON.stringify(value) ?? "null")

/** The value of content made by {@link fromJson}; `undefined` where the text was dropped. */
export const toJson = (content: Content): unknown => (content.text === undefined ? undefined : JSON.parse(content.text))
