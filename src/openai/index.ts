/**
 * The door `bursar/openai`: a `LanguageModel` over the official `openai` package.
 */
export * as OpenAi from "./OpenAi.ts"
export * from "./OpenAi.ts"
