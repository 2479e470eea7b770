/**
 * For testing agents: a scripted model, and a real local HTTP server that speaks a provider's protocol from a script.
 */
export * as ScriptedModel from "./ScriptedModel.ts"
export * as TestingServer from "./TestingServer.ts"
