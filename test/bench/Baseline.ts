/**
 * The floor of the budget bench: the same arithmetic over six dimensions, with ids and journal entries, and without a
 * single check. Records are replaced, not changed, as in the ledger.
 */
interface Vector {
  readonly steps: number
  readonly ticks: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly money: number
  readonly toolCalls: number
}

const plus = (a: Vector, b: Vector): Vector => ({
  steps: a.steps + b.steps,
  ticks: a.ticks + b.ticks,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  money: a.money + b.money,
  toolCalls: a.toolCalls + b.toolCalls,
})

const minus = (a: Vector, b: Vector): Vector => ({
  steps: a.steps - b.steps,
  ticks: a.ticks - b.ticks,
  inputTokens: a.inputTokens - b.inputTokens,
  outputTokens: a.outputTokens - b.outputTokens,
  money: a.money - b.money,
  toolCalls: a.toolCalls - b.toolCalls,
})

const none: Vector = { steps: 0, ticks: 0, inputTokens: 0, outputTokens: 0, money: 0, toolCalls: 0 }

interface Node {
  readonly id: string
  readonly allocated: Vector
  readonly held: Vector
  readonly carved: Vector
  readonly used: Vector
}

interface Held {
  readonly id: string
  readonly account: string
  readonly amounts: Vector
  readonly state: string
}

export class Baseline {
  readonly #nodes = new Map<string, Node>()
  readonly #holds = new Map<string, Held>()
  readonly #record: (entry: object) => void

  constructor(grant: Vector, record: (entry: object) => void) {
    this.#record = record
    this.open("root", grant)
  }

  open(id: string, allocated: Vector): void {
    this.#nodes.set(id, { id, allocated, held: none, carved: none, used: none })
  }

  hold(account: string, id: string, amounts: Vector): void {
    const node = this.#nodes.get(account)!
    this.#nodes.set(account, { ...node, held: plus(node.held, amounts) })
    this.#holds.set(id, { id, account, amounts, state: "Pending" })
    this.#record({ _tag: "Held", account, hold: id, amounts })
  }

  settle(id: string, actual: Vector): void {
    const hold = this.#holds.get(id)!
    const node = this.#nodes.get(hold.account)!
    const [held, used] = [minus(node.held, hold.amounts), plus(node.used, actual)]
    this.#nodes.set(hold.account, { ...node, held, used })
    this.#holds.set(id, { ...hold, state: "Settled" })
    this.#record({ _tag: "Settled", account: hold.account, hold: id, held: hold.amounts, actual })
  }

  carve(parent: string, id: string, grant: Vector): void {
    const node = this.#nodes.get(parent)!
    this.#nodes.set(parent, { ...node, carved: plus(node.carved, grant) })
    this.open(id, grant)
    this.#record({ _tag: "Carved", account: id, parent, grant })
  }

  close(parent: string, id: string): void {
    const [node, child] = [this.#nodes.get(parent)!, this.#nodes.get(id)!]
    const [carved, used] = [minus(node.carved, child.allocated), plus(node.used, child.used)]
    this.#nodes.set(parent, { ...node, carved, used })
    this.#nodes.delete(id)
    this.#record({ _tag: "Closed", account: id, granted: child.allocated, used: child.used })
  }
}
