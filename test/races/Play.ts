/**
 * Plays a plan on some till: the fibers, what they do, and what interrupts them.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { Budget } from "../../src/index.ts"
import type { Action, Actor, Call, Delegation, Plan, Wait } from "./Plan.ts"
import { NoRoom, Planned } from "./Provider.ts"
import { ticks } from "./Schedule.ts"

/** Something that money is spent from; a place is an account of it, and `E` is what its refusals fail with. */
export interface Till<Place, E> {
  readonly root: Place
  /** Pays for a call. */
  readonly spend: (place: Place, id: string, call: Call) => Effect.Effect<unknown, E>
  /** Does something in a part of a place, and gives the rest of it back. */
  readonly within: <A, E2>(
    place: Place,
    as: { readonly id: string; readonly delegation: Delegation },
    body: (part: Place) => Effect.Effect<A, E2>,
  ) => Effect.Effect<A, E | E2>
  readonly wait: (place: Place, wait: Wait) => Effect.Effect<unknown, E>
  readonly close: (place: Place) => Effect.Effect<unknown>
  /** Ends new work everywhere. */
  readonly freeze: Effect.Effect<void>
}

/** Plays a plan; `defects` collects what no plan asked for. */
export const play = <Place, E>(till: Till<Place, E>, plan: Plan, defects: Array<string>): Effect.Effect<void> => {
  const actors = Effect.gen(function* () {
    const fibers: Array<Fiber.Fiber<void>> = []
    for (const [index, actor] of plan.actors.entries()) {
      const fiber = yield* Effect.forkChild(perform(till, actor, `${index}`, defects))
      fibers.push(fiber)
      const after = actor.interruptedAfter
      if (after !== undefined) yield* Effect.forkChild(Effect.andThen(ticks(after), Fiber.interrupt(fiber)))
    }
    for (const fiber of fibers) yield* Fiber.await(fiber)
  })
  const after = plan.cancelledAfter
  if (after === undefined) return actors
  return Effect.raceFirst(actors, Effect.andThen(ticks(after), plan.frozenFirst ? till.freeze : Effect.void))
}

const perform = <Place, E>(
  till: Till<Place, E>,
  actor: Actor,
  id: string,
  defects: Array<string>,
): Effect.Effect<void> => {
  const each = inOrder(till, till.root, { id, actor, actions: actor.actions })
  const whole = actor.timeoutAfter === undefined ? each : Effect.raceFirst(each, ticks(actor.timeoutAfter))
  return whole.pipe(
    Effect.onExit((exit) => Effect.sync(() => defects.push(...unplanned(exit)))),
    Effect.exit,
    Effect.asVoid,
  )
}

interface Part {
  readonly id: string
  readonly actor: Actor
  readonly actions: ReadonlyArray<Action>
}

const inOrder = <Place, E>(till: Till<Place, E>, place: Place, part: Part): Effect.Effect<void, unknown> =>
  Effect.forEach(part.actions, (action, index) => one(till, place, part, { action, index }), { discard: true })

/** Two strands side by side, each in order. */
const abreast = <Place, E>(till: Till<Place, E>, place: Place, part: Part): Effect.Effect<void, unknown> =>
  Effect.forEach(
    [0, 1],
    (strand) =>
      inOrder(till, place, {
        ...part,
        id: `${part.id}.${strand}`,
        actions: part.actions.filter((_, index) => index % 2 === strand),
      }),
    { discard: true, concurrency: "unbounded" },
  )

const one = <Place, E>(
  till: Till<Place, E>,
  place: Place,
  part: Part,
  { action, index }: { readonly action: Action; readonly index: number },
): Effect.Effect<unknown, unknown> => {
  const done = perTag(till, place, { ...part, id: `${part.id}.${index}` }, action)
  return part.actor.persistent ? done.pipe(Effect.catch(() => Effect.void)) : done
}

const perTag = <Place, E>(
  till: Till<Place, E>,
  place: Place,
  part: Part,
  action: Action,
): Effect.Effect<unknown, unknown> => {
  switch (action._tag) {
    case "Call":
      return till.spend(place, part.id, action)
    case "Wait":
      return till.wait(place, action)
    case "Close":
      return till.close(place)
    case "Delegation": {
      const within = { ...part, actions: action.actions }
      return till.within(place, { id: part.id, delegation: action }, (child) =>
        action.abreast ? abreast(till, child, within) : inOrder(till, child, within),
      )
    }
  }
}

/** What died and was not meant to. Effect turns a failure beside a defect into a defect as well: those count as failures. */
const unplanned = (exit: Exit.Exit<unknown, unknown>): ReadonlyArray<string> => {
  if (Exit.isSuccess(exit)) return []
  const defects = exit.cause.reasons.filter(Cause.isDieReason).map((reason) => reason.defect)
  const planned = defects.some((defect) => defect instanceof Planned)
  return defects
    .filter((defect) => !(defect instanceof Planned) && !(planned && isRefusal(defect)))
    .map((defect) => (defect instanceof Error ? `${defect.stack}` : String(defect)))
}

const isRefusal = (defect: unknown): boolean => defect instanceof Budget.BudgetError || defect instanceof NoRoom
