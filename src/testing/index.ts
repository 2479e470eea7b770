/**
 * For testing agents: a scripted model, and a real local HTTP server that speaks a provider's protocol from a script.
 */
export * as Law from "./Law.ts"
export * as ScriptedModel from "./ScriptedModel.ts"
export * as TestingServer from "./TestingServer.ts"
