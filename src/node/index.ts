/**
 * The door `bursar/node`: what needs a file system and processes.
 */
export * as FileJournal from "./FileJournal.ts"
export * as Files from "./Files.ts"
export * as Command from "./Command.ts"
export * as Fetch from "./Fetch.ts"
export * as Check from "./Check.ts"
