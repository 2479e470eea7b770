/**
 * Changing source by rule. A rule says for which inputs it is made, and how a function has to look at its parameter so
 * that it understands them; what the function is, and where it first looks, is read from its file.
 */
import { fullWidthIn, ordinary } from "./Clues.ts"

/** One replacement in a file. */
export interface Edit {
  readonly old: string
  readonly new: string
}

interface Rule {
  readonly name: string
  readonly isFor: (input: string) => boolean
  readonly look: (parameter: string) => string
}

const rules: ReadonlyArray<Rule> = [
  {
    name: "full-width characters are read as ordinary ones",
    isFor: (input) => fullWidthIn(input).length > 0 && fullWidthIn(ordinary(input)).length === 0,
    look: (parameter) => `${parameter}.normalize("NFKC")`,
  },
  {
    name: "invisible characters are left out",
    isFor: (input) => /[\u200B-\u200D\u2060\uFEFF]/.test(input),
    look: (parameter) => String.raw`${parameter}.replace(/[\u200B-\u200D\u2060\uFEFF]/gu, "")`,
  },
]

const ruleFor = (input: string): Rule | undefined => rules.find((one) => one.isFor(input))

/** The rule for an input in words, if there is one. */
export const ruleName = (input: string): string | undefined => ruleFor(input)?.name

/**
 * The change that makes the function `name` understand `input`, or nothing: no rule is made for that input, the function
 * is not in the source, or it looks at its parameter that way already.
 */
export const edit = (source: string, name: string, input: string): Edit | undefined => {
  const rule = ruleFor(input)
  const lines = source.split("\n")
  const head = new RegExp(String.raw`\bfunction ${name}\((\w+)|\b${name} = (?:\((\w+)|(\w+) =>)`)
  const start = lines.findIndex((line) => head.test(line))
  const parameter = head
    .exec(lines[start] ?? "")
    ?.slice(1)
    .find((one) => one !== undefined)
  if (rule === undefined || parameter === undefined) return undefined
  const use = new RegExp(String.raw`(?<![\w.$])${parameter}(?![\w:])`)
  const end = lines.findIndex((line, index) => index > start && line.startsWith("}"))
  const at = lines.findIndex((line, index) => index > start && index < end && use.test(line))
  const line = lines[at]
  if (line === undefined || line.includes(rule.look(parameter))) return undefined
  return once(
    lines,
    at,
    line.replace(use, () => rule.look(parameter)),
  )
}

/** A replacement of one line, with as many lines before it as it takes to be found once. */
const once = (lines: ReadonlyArray<string>, at: number, changed: string): Edit => {
  const source = lines.join("\n")
  for (let from = at; ; from--) {
    const before = lines.slice(from, at)
    const old = [...before, lines[at]].join("\n")
    if (from === 0 || source.split(old).length === 2) return { old, new: [...before, changed].join("\n") }
  }
}
