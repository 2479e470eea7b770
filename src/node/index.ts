/**
 * The door `bursar/node`: what needs a file system and processes.
 */
export * as FileJournal from "./FileJournal.ts"
