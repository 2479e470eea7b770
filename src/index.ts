/**
 * Bursar: agents and trees of agents that cannot overspend, cannot run away and cannot end without saying why.
 */
export * as Agent from "./agent/Agent.ts"
export * as Budget from "./scope/Budget.ts"
export * as Event from "./event/Event.ts"
export * as Journal from "./journal/Journal.ts"
export * as Line from "./journal/Line.ts"
export * as Model from "./model/Model.ts"
export * as Policy from "./policy/Policy.ts"
export * as Price from "./model/Price.ts"
export * as Proposal from "./policy/Proposal.ts"
export * as Provider from "./model/Provider.ts"
export * as State from "./state/State.ts"
export * as Permission from "./tool/Permission.ts"
export * as ToolError from "./tool/ToolError.ts"
export * as Contract from "./tool/Contract.ts"
export * as Verifier from "./verify/Verifier.ts"
