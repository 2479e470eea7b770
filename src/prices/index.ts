/**
 * The door `bursar/prices`: what models cost, out of a table that others keep.
 */
export * as Prices from "./Prices.ts"
