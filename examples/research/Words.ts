/**
 * Words as the search sees them: the stems of a text, and which words carry no subject.
 *
 * Leaves Markdown to {@link ./Markdown.ts} and questions to {@link ./Question.ts}. Two texts speak of the same thing
 * when they share a stem; every other module compares stems through this one, so that search, relevance and
 * verification can never disagree about whether two words are the same.
 */

// The endings of English are irregular in few words that matter in documentation; these are they.
const IRREGULAR: ReadonlyMap<string, string> = new Map(
  `began:begin begun:begin bound:bind broke:break broken:break built:build caught:catch children:child chose:choose
  chosen:choose drawn:draw dying:die fell:fall fallen:fall gave:give given:give gone:go grew:grow grown:grow
  held:hold hidden:hide indices:index kept:keep laid:lay led:lead lost:lose made:make meant:mean
  overridden:override paid:pay ran:run sent:send spent:spend stored:store taken:take thrown:throw threw:throw
  took:take went:go written:write wrote:write`
    .split(/\s+/)
    .map((pair) => pair.split(":") as [string, string]),
)

const STOP_WORDS = new Set(
  `a about above across after again against all almost along already also although always am among an and another any
  anybody anyone anything anywhere are aren around as at away back be became because become been before behind being
  below between both but by can cannot could couldn did didn do does doesn doing don done down during each either else
  enough even ever every everything exactly few for from further get gets getting go goes got had has hasn have haven
  having he hence her here hers him his how however i if in instead into is isn it its itself just keep least less let
  like likely ll made make makes making many may maybe me might mine more most much must my myself near neither never
  no nobody none nor not nothing now of off often on once one ones only onto or other others otherwise our ours out
  over own per perhaps please put quite rather re really s same seem seems shall she should shouldn since so some
  someone something somewhere soon still such t take takes than that the their them then there therefore these they
  this those though through throughout thus till to together too toward towards under unless until up upon us ve very
  via was wasn we well were weren what whatever when whenever where wherever whether which while who whoever whole
  whom whose why will with within without won would wouldn yet you your yours yourself
  der die das den dem des ein eine einen einem einer und oder nicht ist sind wird werden wie wo wann warum wieso welche
  welcher welches mit von zu zum zur im auf für bei aus ich man kann es sich als auch wenn
  le la les un une du au aux et ou est sont comment pourquoi quand quel quelle quels quelles que qui dans sur pour avec
  par il elle on ce cette ces je
  el los las una unos unas del al y o es son cómo como qué por quién cuándo cuál dónde para con en se lo`
    .split(/\s+/)
    .filter((word) => word !== "keep"),
)

// Words of the asking, never of what is asked about: "what happens when", "which way is best", "explain".
const ASKING_WORDS = new Set(
  `according allow allows ask asked asking best better certain describe differ difference differences different
  differently especially exist exists explain give gives given good happen happened happening happens help important
  involve involved know known look main mean meaning means mention mentioned need needed needs occur occurs possible
  provide provides recommended relate related say says sort sorts suppose supposed tell thing things understand use
  used useful user uses using usual usually want way ways work working works`.split(/\s+/),
)

// Words that are mostly of the asking, and the subject only where the question names no other: "What are the types?".
const WEAK_WORDS = new Set(
  `answer called common description detail details document documents documentation example examples explanation fact
  facts find finding findings information kind kinds purpose question questions reason reasons show shows topic topics
  type types`.split(/\s+/),
)

/** Whether `word` is a function word, which no relevance may rest on. */
export const isStopWord = (word: string): boolean => STOP_WORDS.has(word.toLowerCase())

/** Whether `word` belongs to the form of a question rather than to its subject. */
export const isAskingWord = (word: string): boolean => ASKING_WORDS.has(word.toLowerCase())

/** Whether `word` is the subject of a question only when there is no other. */
export const isWeakWord = (word: string): boolean => WEAK_WORDS.has(word.toLowerCase())

// Verbs for which a document may well use another ("set", "configure"); forms are found by stem.
const LIGHT_VERBS = `add apply build call change configure create define disable do enable handle implement limit make
  open perform process read receive remove represent run send set specify start stop store support test turn write`

const PARTICLES = ["out", "up", "down", "off"]
const COMPOUND = /^(\p{L}{3,})(out|up|down|off)$/u
const VOWEL = /[aeiouy]/

const withoutPlural = (word: string): string => {
  if (word.length < 4 || /(?:ss|us|is)$/.test(word)) return word
  if (word.endsWith("ies")) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1)
  if (/(?:ss|x|ch|sh|zz)es$/.test(word)) return word.slice(0, -2)
  return word.endsWith("s") ? word.slice(0, -1) : word
}

const withoutTense = (word: string): string => {
  if (word.endsWith("ied") && word.length > 4) return `${word.slice(0, -3)}y`
  const match = /^(.+?)(?:ed|ing)$/.exec(word)
  const root = match?.[1]
  if (root === undefined || root.length < 3 || !VOWEL.test(root) || word.endsWith("eed")) return word
  return /([^aeioulsz])\1$/.test(root) ? root.slice(0, -1) : root
}

// Each takes off a suffix only where at least that many letters stay: "dispatcher" is of "dispatch", "header" is not of "head".
const DERIVATIONS: ReadonlyArray<readonly [suffix: RegExp, keep: number]> = [
  [/ly$/, 4],
  [/ness$/, 4],
  [/(?:able|ible)$/, 4],
  [/ment$/, 4],
  [/(?<=[st])ion$/, 4],
  [/(?:er|or)$/, 5],
  [/e$/, 3],
  [/at$/, 4],
]

const withoutDerivation = (word: string): string =>
  DERIVATIONS.reduce((rest, [suffix, keep]) => {
    const shorter = rest.replace(suffix, "")
    return shorter.length >= keep ? shorter : rest
  }, word)

/**
 * The stem of one word: lower case, without accents, plural, tense and the commonest derivations.
 *
 * **Example** (One stem for the forms of a verb)
 *
 * ```ts
 * Words.stem("aborted") === Words.stem("aborting") // => true
 * Words.stem("timeouts") === Words.stem("timeout") // => true
 * ```
 */
export const stem = (word: string): string => {
  const folded = word
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/['’](?:s|re|ve|ll|d|t|m)?$/u, "")
  if (folded.length < 3 || /\p{N}/u.test(folded)) return folded
  const singular = withoutPlural(IRREGULAR.get(folded) ?? folded)
  const compound = COMPOUND.exec(singular)
  if (compound !== null) return withoutDerivation(withoutTense(compound[1]!)) + compound[2]!
  return withoutDerivation(withoutTense(IRREGULAR.get(singular) ?? singular))
}

const WORD = /[\p{L}\p{N}\p{M}]+(?:(?:['’_-]|\/(?=\p{N}))[\p{L}\p{N}\p{M}]+)*/gu
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u

/** The words of a text as they are written, in order. */
export const words = (text: string): ReadonlyArray<string> => text.match(WORD) ?? []

/** How long a text is in words; scripts that write no spaces count two characters as one word. */
export const count = (text: string): number =>
  words(text).reduce((sum, word) => sum + (UNSPACED.test(word) ? Math.ceil(word.length / 2) : 1), 0)

const parts = (word: string): ReadonlyArray<string> =>
  word
    .replace(/['’](?:s|re|ve|ll|d|t|m)$/u, "")
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll}{2})/gu, "$1 $2")
    .split(/[\s_/'’-]+/u)
    .filter((part) => part !== "")

const pairs = (text: string): ReadonlyArray<string> => {
  const characters = [...text]
  return characters.length < 2 ? characters : characters.slice(1).map((character, at) => characters[at]! + character)
}

/**
 * The ways in which a text can speak of `word`: each is a list of stems that must all be there.
 * `keepAliveTimeout` is met by the whole name or by its three parts; a word of an unspaced script by its pairs.
 */
export const waysToSay = (word: string): ReadonlyArray<ReadonlyArray<string>> => {
  if (UNSPACED.test(word)) return [pairs(word)]
  const split = parts(word)
  return split.length < 2 ? [[stem(split[0] ?? word)]] : [[stem(split.join(""))], split.map(stem)]
}

/** What "timed out" says in one word, when `next` is the particle of the verb `word`; otherwise `undefined`. */
export const phrasal = (word: string, next: string | undefined): string | undefined =>
  next !== undefined && PARTICLES.includes(next.toLowerCase()) && !isStopWord(word)
    ? stem(word) + next.toLowerCase()
    : undefined

// Documents repeat their words; each is taken apart once.
const memoized = <A>(compute: (word: string) => A): ((word: string) => A) => {
  const known = new Map<string, A>()
  return (word) => {
    const before = known.get(word)
    if (before !== undefined) return before
    const computed = compute(word)
    if (known.size < 200_000) known.set(word, computed)
    return computed
  }
}

const stemsOf = memoized((word: string): ReadonlyArray<string> => {
  if (UNSPACED.test(word)) return pairs(word)
  const split = parts(word)
  if (split.length < 2) return split.map(stem)
  const neighbours = split.slice(1).map((part, at) => stem(split[at]! + part))
  return [...split.map(stem), ...neighbours, ...(split.length > 2 ? [stem(split.join(""))] : [])]
})

/** All stems of a text, function words included, names also in their parts and phrasal verbs also in one word. */
export const stems = (text: string): ReadonlyArray<string> => stemsBy(text, stemsOf)

/** The stems of a text without those that stand only inside a name: "an AbortSignal" does not say "abort". */
export const outsideNames = (text: string): ReadonlyArray<string> =>
  stemsBy(text, (word) => (/[\p{Ll}\p{N}]\p{Lu}|_/u.test(word) ? [stem(parts(word).join(""))] : stemsOf(word)))

const stemsBy = (text: string, of: (word: string) => ReadonlyArray<string>): ReadonlyArray<string> => {
  const all = words(text)
  return all.flatMap((word, at) => {
    const joined = phrasal(word, all[at + 1])
    return joined === undefined ? of(word) : [...of(word), joined]
  })
}

const LIGHT_STEMS = new Set(LIGHT_VERBS.split(/\s+/).map(stem))

/** Whether a document that speaks of the same thing may well not say `word`: a light verb, an adverb, a digit. */
export const isLight = (word: string): boolean => LIGHT_STEMS.has(stem(word)) || /^\d$|\p{L}{3}ly$/u.test(word)

// Stems of stop words, for an index that has only stems to look at.
const STOP_STEMS = new Set([...STOP_WORDS].map(stem))

/** The stems of a text that are worth indexing. */
export const indexed = (text: string): ReadonlyArray<string> =>
  stems(text).filter((each) => !STOP_STEMS.has(each) && (each.length > 1 || /\p{N}/u.test(each) || UNSPACED.test(each)))
