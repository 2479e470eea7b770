/**
 * What an image costs in tokens by the rules that OpenAI publishes for its models: by size and detail, whatever the
 * length of its base64.
 *
 * Its law: never less than the rule says. Where the size is unknown it is the most that the rule allows; where the
 * model is unknown, the most of all rules. Where bills were seen to differ from what is published, the dearer one counts:
 * models that cut images into patches bill `low` like `high`, and all of them since gpt-5.1 at least 1.2 tokens a patch.
 *
 * **Source**: the guide "Images and vision", and what users of the API measured.
 */
import type { ImageSize } from "../../model/ImageSize.ts"

/** Either tiles of 512 pixels beside a base, or patches of 32 pixels at so many hundredths of a token. */
type Rule =
  | { readonly base: number; readonly tile: number }
  | { readonly hundredths: number; readonly patches: number; readonly original?: number }

const gpt4oMini: Rule = { base: 2833, tile: 5667 }
const gpt4: Rule = { base: 85, tile: 170 }
const gpt5: Rule = { base: 70, tile: 140 }
const reasoning: Rule = { base: 75, tile: 150 }
const computerUse: Rule = { base: 65, tile: 129 }

const small = (hundredths: number): Rule => ({ hundredths, patches: 1_536 })
/** Since gpt-5.1; `auto` may mean the original size. */
const recent = (hundredths: number): Rule => ({ hundredths, patches: 2_500, original: 10_000 })

const all: ReadonlyArray<Rule> = [gpt4oMini, gpt4, gpt5, reasoning, computerUse, small(246), recent(246)]

/** The first that fits; several rules where it was never said which holds. */
const rules: ReadonlyArray<readonly [name: RegExp, rules: ReadonlyArray<Rule>]> = [
  [/^gpt-4o-mini/, [gpt4oMini]],
  [/^computer-use/, [computerUse]],
  [/^(gpt-4\.1|gpt-5)-nano/, [small(246)]],
  [/^(gpt-4\.1|gpt-5)-mini/, [small(162)]],
  [/^(o4-mini|codex-mini)/, [small(172)]],
  [/^(gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4\.5|gpt-4-turbo|gpt-4-vision)/, [gpt4]],
  [/^gpt-5(-\d{4}-\d\d-\d\d|-chat.*|-pro.*)?$/, [gpt5]],
  [/^o[13](?!-mini)/, [reasoning]],
  [/^gpt-([6-9]|5\.[1-9]).*nano/, [recent(246), gpt5]],
  [/^gpt-([6-9]|5\.[1-9]).*mini/, [recent(162), gpt5]],
  [/^gpt-([6-9]|5\.[1-9]|5-codex)/, [recent(120), gpt5]],
]

/** A model's own name, without the provider that a gateway writes before it. */
export const nameOf = (model: string): string =>
  model
    .toLowerCase()
    .replace(/^(openai|azure)\//, "")
    .replace(/^ft:/, "")

/**
 * The tokens of one image. Every `detail` but `low`, `high` and `original` is `auto`.
 *
 * **Units**: tokens.
 */
export const imageTokens = (model: string, detail: unknown, size: ImageSize | undefined): number => {
  const name = nameOf(model)
  const fitting = rules.find(([pattern]) => pattern.test(name))?.[1] ?? all
  return Math.max(...fitting.map((rule) => by(rule, detail, size)))
}

const by = (rule: Rule, detail: unknown, size: ImageSize | undefined): number => {
  if ("tile" in rule)
    return detail === "low" ? rule.base : rule.base + rule.tile * (size === undefined ? 8 : tiles(size))
  const most = detail === "low" || detail === "high" ? rule.patches : (rule.original ?? rule.patches)
  const patches = size === undefined ? most : Math.min(most, Math.ceil(size.width / 32) * Math.ceil(size.height / 32))
  return Math.ceil((patches * rule.hundredths) / 100)
}

/** Scaled into a square of 2048 pixels, then to 768 on the shorter side; never scaled up. At most 2 by 4. */
const tiles = ({ height, width }: ImageSize): number => {
  const [long, short] = [Math.max(width, height), Math.min(width, height)]
  const scale = Math.min(1, 2048 / long, 768 / short)
  const count = (side: number): number => Math.max(1, Math.ceil((side * scale) / 512 - 1e-9))
  return count(long) * count(short)
}
