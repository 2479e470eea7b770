/**
 * Budgets as users see them: the tree of accounts, and scopes around any Effect.
 */
export * from "../budget/Budget.ts"
export { carve, CurrentAccount, current, open, snapshot, spend } from "./Scope.ts"
export type { CarveOptions, OpenOptions, SpendOptions } from "./Scope.ts"
